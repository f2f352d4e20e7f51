"""A driver with two workers that fail once in mid-epoch; test_ray.py starts it."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import ray
import torch
from ray import train
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model
from torch.nn import functional as F

from tests.adapters.torch_support import NUM_CLASSES, NUM_SAMPLES, Stream, loader
from undermargin import Tracker
from undermargin.adapters.ray import load, report, restore

EPOCHS, FAILURE = 3, (1, 3)  # six batches an epoch: in the middle of the second one


class Training:
    """A model, its tracker and the next step of a worker."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = prepare_model(torch.nn.Linear(4, NUM_CLASSES), move_to_device=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.tracker, self.stream, self.start = Tracker(NUM_SAMPLES, suggest=NUM_CLASSES), Stream(), (0, 0)

    def run(self, before_step):
        context = train.get_context()
        batches = loader(5, rank=context.get_world_rank(), ranks=context.get_world_size())
        for epoch in range(self.start[0], EPOCHS):
            batches.sampler.set_epoch(epoch)
            for number, (x, labels, indices) in enumerate(batches):
                if (epoch, number) < self.start:
                    continue
                before_step(epoch, number)
                logits = self.model(x)
                self.tracker.update(logits, labels, indices)
                self.stream.write(epoch, x, labels, logits)
                self.optimizer.zero_grad()
                F.cross_entropy(logits, labels).backward()
                self.optimizer.step()
            self.tracker.end_epoch()

    def save_and_fail(self, epoch, number):
        if (epoch, number) == FAILURE and train.get_checkpoint() is None:
            with TemporaryDirectory() as folder:
                state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
                torch.save(state, Path(folder) / "training.pt")
                report(self.tracker, {"epoch": epoch}, folder, name="fold0")
            raise RuntimeError("the power went out")

    def restore(self):
        if restore(self.tracker, name="fold0"):
            with train.get_checkpoint().as_directory() as folder:
                state = torch.load(Path(folder) / "training.pt", weights_only=True)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.start = FAILURE


def loop(config):
    failing = Training()
    failing.restore()
    failing.run(failing.save_and_fail)
    whole = Training()
    whole.run(lambda epoch, number: None)
    found = {"rows": whole.stream.rows, "aum": whole.tracker.scores().tolist(), "start": failing.start}
    found |= {"suggested": whole.tracker.suggestions()[0].tolist()}
    Path(config["folder"], f"rank{train.get_context().get_world_rank()}.json").write_text(json.dumps(found))
    report(failing.tracker, {"epoch": EPOCHS}, name="fold0")


def main():
    folder = sys.argv[1]
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
    trainer = TorchTrainer(
        loop,
        train_loop_config={"folder": folder},
        torch_config=TorchConfig("gloo"),
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=folder, name="ray", failure_config=FailureConfig(max_failures=1)),
    )
    result = trainer.fit()
    tracker = load(result, name="fold0")
    found = {"aum": tracker.scores().tolist(), "suggested": tracker.suggestions()[0].tolist()}
    try:
        load(result)
    except ValueError as error:
        found["error"] = str(error)
    Path(folder, "driver.json").write_text(json.dumps(found))
    ray.shutdown()


if __name__ == "__main__":
    main()
