"""What watching adds to an epoch of each framework's example, with and without taking turns in one run.

Three trainings are compared: bare; with indices in the batches, which `IndexedDataset` adds; with indices and watched.
The adapter's share is the last against the second, and everything together the last against the first. Times are CPU
seconds of the quickest epoch, and ratios are taken within a round: other programs slow this one down.
"""

import json
import logging
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from bench.trainings import EPOCHS, Task, compare
from undermargin import IndexedDataset

Seconds = dict[str, float]  # of each kind of training


def pytorch(task: Task) -> None:
    """A plain loop."""
    task.loop(task.model, task.optimizer, task.loader(), lambda loss: loss.backward())


def accelerate(task: Task) -> None:
    """A loop with Accelerate in one process."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, loader = accelerator.prepare(task.model, task.optimizer, task.loader())
    task.loop(model, optimizer, loader, accelerator.backward)


def lightning(task: Task) -> None:
    """The callback, with a hook on the network and the indices hidden from the step."""
    import lightning as library

    from undermargin.adapters.lightning import TrackerCallback

    class Module(library.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = task.model

        def training_step(self, batch: Any) -> Any:
            x, label, *_ = batch
            return cross_entropy(self.net(x), label)

        def configure_optimizers(self) -> Any:
            return task.optimizer

    class Timing(library.Callback):  # type: ignore[misc]
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            task.clock.start()

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            task.clock.stop()

    watching = [TrackerCallback(task.tracker, submodule="net", hide_indices=True)] if task.is_watched else []
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = library.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", enable_checkpointing=False, callbacks=[*watching, Timing()], **quiet
    )
    trainer.fit(Module(), task.loader())


def huggingface(task: Task) -> None:
    """A stock Trainer, and the small transformer of its example."""
    from transformers import Trainer, TrainerCallback, TrainingArguments, ViTConfig, ViTForImageClassification

    from undermargin.adapters.huggingface import observe

    class Timing(TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, *_: Any, **__: Any) -> None:
            task.clock.start()

        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            task.clock.stop()

    rows = zip(task.pixels, task.fold.labels.tolist(), strict=True)
    dataset: Any = [{"pixel_values": pixels, "label": label} for pixels, label in rows]
    size = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 128}
    model = ViTForImageClassification(ViTConfig(image_size=8, patch_size=2, num_channels=1, num_labels=11, **size))
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "logging_strategy": "no"}
        arguments = TrainingArguments(
            folder, num_train_epochs=EPOCHS, per_device_train_batch_size=64, learning_rate=3e-3, use_cpu=True, **quiet
        )
        trainer = Trainer(model, arguments, train_dataset=IndexedDataset(dataset) if task.is_indexed else dataset)
        if task.is_watched:
            observe(trainer, task.tracker)
        trainer.add_callback(Timing())
        trainer.train()


def ignite(task: Task) -> None:
    """An engine, observed."""
    from ignite.engine import Events, create_supervised_trainer

    from undermargin.adapters.ignite import observe

    trainer = create_supervised_trainer(
        task.model,
        task.optimizer,
        cross_entropy,
        prepare_batch=lambda batch, device, non_blocking: batch[:2],  # noqa: ARG005
        output_transform=lambda x, y, y_pred, loss: {"loss": loss.item(), "logits": y_pred},  # noqa: ARG005
    )
    if task.is_watched:
        observe(trainer, task.tracker)
    trainer.add_event_handler(Events.EPOCH_STARTED, task.clock.start)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, task.clock.stop)
    trainer.run(task.loader(), max_epochs=EPOCHS)


def ray(task: Task) -> None:
    """A loop in two workers of Ray Train, with a report at the end; runs in the workers."""
    from ray import train
    from ray.train.torch import prepare_data_loader, prepare_model

    from undermargin.adapters.ray import report

    loader = prepare_data_loader(task.loader())
    task.loop(prepare_model(task.model), task.optimizer, loader, lambda loss: loss.backward())
    task.clock.start()
    if task.is_watched:
        report(task.tracker, {})
    else:
        train.report({})
    task.clock.stop()
    # the example reports once, after its ten epochs
    last = task.clock.seconds.pop()
    task.clock.seconds = [seconds + last / 10 for seconds in task.clock.seconds]


def _in_worker(config: dict[str, Any]) -> None:
    from ray import train

    torch.set_num_threads(1)
    found = compare(ray)
    if train.get_context().get_world_rank() == 0:
        Path(config["file"]).write_text(json.dumps(found))


def _in_driver() -> list[Seconds]:
    """Start Ray, train in two workers, and return what the first of them measured."""
    import ray as library
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    library.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "seconds.json"
            settings = {"scaling_config": ScalingConfig(num_workers=2), "run_config": RunConfig(storage_path=folder)}
            TorchTrainer(_in_worker, train_loop_config={"file": str(file)}, **settings).fit()
            found: list[Seconds] = json.loads(file.read_text())
            return found
    finally:
        library.shutdown()


FRAMEWORKS: dict[str, Callable[[], list[Seconds]]] = {
    "pytorch": lambda: compare(pytorch),
    "accelerate": lambda: compare(accelerate),
    "lightning": lambda: compare(lightning),
    "huggingface": lambda: compare(huggingface),
    "ignite": lambda: compare(ignite),
    "ray": _in_driver,
}


def measure() -> dict[str, Any]:
    """Print and return, for each framework, how much longer an epoch takes when it is watched."""
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, measured in FRAMEWORKS.items():
            rounds = measured()
            results[name] = {
                "adapter": _ratio(rounds, "watched", "indexed"),
                "with_indices": _ratio(rounds, "watched", "bare"),
                "seconds": statistics.median(one["bare"] for one in rounds),
            }
            low, middle, high = (value - 1 for value in results[name]["adapter"])
            print(
                f"{name:12} adapter {middle:+.1%} ({low:+.1%} to {high:+.1%}), "
                f"with indices {results[name]['with_indices'][1] - 1:+.1%}, epoch {results[name]['seconds']:.3f} s"
            )
    return results


def _ratio(rounds: list[Seconds], kind: str, base: str) -> list[float]:
    """Quartiles over the rounds."""
    return statistics.quantiles([one[kind] / one[base] for one in rounds], n=4)
