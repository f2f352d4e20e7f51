"""One or two ranks that train with Accelerate; test_accelerate.py starts them."""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches
from accelerate.utils import set_seed
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tests.adapters.torch_support import NUM_CLASSES, NUM_SAMPLES, Blobs, Stream
from undermargin import IndexedDataset, Tracker

EPOCHS, CHECKPOINT = 3, (1, 2)  # saved before this batch of this epoch


class Training:
    """The user's loop: a plain one, with or without a tracker."""

    def __init__(self, folder, *, is_tracked=True):
        self.folder, self.stream = folder / "checkpoint", Stream()
        self.accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
        set_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, NUM_CLASSES))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data = IndexedDataset(Blobs())
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            model, optimizer, DataLoader(data, 5, shuffle=True)
        )
        self.tracker = Tracker(NUM_SAMPLES, suggest=NUM_CLASSES) if is_tracked else None
        if is_tracked:
            self.accelerator.register_for_checkpointing(self.tracker)
        self.losses = []

    def run(self, *, start=(0, 0), save=False):
        for epoch in range(start[0], EPOCHS):
            self.loader.set_epoch(epoch)
            skipped = start[1] if epoch == start[0] else 0
            batches = skip_first_batches(self.loader, skipped) if skipped else self.loader
            for number, (x, labels, indices) in enumerate(batches, skipped):
                if save and (epoch, number) == CHECKPOINT:
                    self.tracker.reduce()
                    self.accelerator.save_state(self.folder)
                self.step(epoch, x, labels, indices)
            if self.tracker is not None:
                self.tracker.end_epoch()
        return self

    def step(self, epoch, x, labels, indices):
        logits = self.model(x)
        if self.tracker is not None:
            self.tracker.update(logits, labels, indices)
        self.stream.write(epoch, x, labels, logits)
        loss = F.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.losses.append(loss.item())

    def weights(self):
        return [tensor.tolist() for tensor in self.accelerator.unwrap_model(self.model).state_dict().values()]


def main():
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    bare = Training(folder, is_tracked=False).run()
    whole = Training(folder).run(save=True)
    resumed = Training(folder)
    resumed.accelerator.load_state(folder / "checkpoint")
    resumed.run(start=CHECKPOINT)
    found = {
        "rows": whole.stream.rows,
        "aum": whole.tracker.scores().tolist(),
        "resumed": resumed.tracker.scores().tolist(),
        "suggested": [one.tracker.suggestions()[0].tolist() for one in (whole, resumed)],
        "losses": [bare.losses, whole.losses],
        "weights": [bare.weights(), whole.weights()],
    }
    (folder / f"rank{whole.accelerator.process_index}.json").write_text(json.dumps(found))
    whole.accelerator.end_training()


if __name__ == "__main__":
    main()
