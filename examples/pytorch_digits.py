"""A plain PyTorch loop. A tenth of the digits' labels is flipped on purpose; which ones?"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from undermargin import IndexedDataset, RelabeledDataset, Scan, Tracker, folds

images, true_labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
is_flipped = rng.random(len(true_labels)) < 0.1
labels = np.where(is_flipped, (true_labels + rng.integers(1, 10, len(true_labels))) % 10, true_labels)
pixels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
dataset = TensorDataset(pixels, torch.tensor(labels))


def make_model(num_outputs):
    body = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    head = nn.Sequential(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, num_outputs))
    return nn.Sequential(body, head)


def train(fold, epochs=10):
    torch.manual_seed(fold.number)
    model = make_model(fold.num_outputs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    # threshold samples get the extra label, and every sample its index
    loader = DataLoader(IndexedDataset(RelabeledDataset(dataset, fold.labels)), batch_size=64, shuffle=True)
    tracker = Tracker(len(dataset), suggest=fold.num_classes)
    for _ in range(epochs):
        for x, label, index in loader:
            logits = model(x)
            tracker.update(logits, label, index)
            optimizer.zero_grad()
            cross_entropy(logits, label).backward()
            optimizer.step()
        tracker.end_epoch()
    return tracker.run(fold, class_names=list("0123456789"))


runs = [train(fold) for fold in folds(labels, num_classes=10)]
scan = Scan.of(runs, out="scans/pytorch")
print(f"{scan.verdicts}; {scan.verdicts.is_flagged[is_flipped].mean():.0%} of the flipped labels are among them")
scan.report()
