"""Lightning: one callback. A tenth of the digits' labels is flipped on purpose; which ones?"""

import lightning
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from undermargin import IndexedDataset, RelabeledDataset, Scan, Tracker, folds
from undermargin.adapters.lightning import TrackerCallback

images, true_labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
is_flipped = rng.random(len(true_labels)) < 0.1
labels = np.where(is_flipped, (true_labels + rng.integers(1, 10, len(true_labels))) % 10, true_labels)
pixels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
dataset = TensorDataset(pixels, torch.tensor(labels))


class Classifier(lightning.LightningModule):
    """The user's module, as it was."""

    def __init__(self, num_outputs):
        super().__init__()
        body = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        head = nn.Sequential(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, num_outputs))
        self.net = nn.Sequential(body, head)

    def training_step(self, batch):
        """The loss; hide_indices takes the index off the batch."""
        x, label = batch
        return cross_entropy(self.net(x), label)

    def configure_optimizers(self):
        """Gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def train(fold):
    lightning.seed_everything(fold.number)
    # threshold samples get the extra label, and every sample its index
    loader = DataLoader(IndexedDataset(RelabeledDataset(dataset, fold.labels)), batch_size=64, shuffle=True)
    tracker = Tracker(len(dataset), suggest=fold.num_classes)
    callback = TrackerCallback(tracker, submodule="net", hide_indices=True, name=f"fold{fold.number}")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    trainer = lightning.Trainer(max_epochs=10, accelerator="cpu", callbacks=[callback], **quiet)
    trainer.fit(Classifier(fold.num_outputs), loader)
    return tracker.run(fold, class_names=list("0123456789"))


runs = [train(fold) for fold in folds(labels, num_classes=10)]
scan = Scan.of(runs, out="scans/lightning")
print(f"{scan.verdicts}; {scan.verdicts.is_flagged[is_flipped].mean():.0%} of the flipped labels are among them")
scan.report()
