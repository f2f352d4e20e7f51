"""Ray Train: two workers. A tenth of the digits' labels is flipped on purpose; which ones?"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import ray
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from undermargin import IndexedDataset, RelabeledDataset, Scan, Tracker, folds
from undermargin.adapters.ray import load, report

images, true_labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
is_flipped = rng.random(len(true_labels)) < 0.1
labels = np.where(is_flipped, (true_labels + rng.integers(1, 10, len(true_labels))) % 10, true_labels)
dataset = TensorDataset(torch.tensor(images / 16).float().reshape(-1, 1, 8, 8), torch.tensor(labels))


def train(fold):
    torch.manual_seed(fold.number)
    body = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    head = nn.Sequential(nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, fold.num_outputs))
    model, tracker = prepare_model(nn.Sequential(body, head)), Tracker(len(dataset), suggest=fold.num_classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    # threshold samples get the extra label, and every sample its index
    loader = prepare_data_loader(DataLoader(IndexedDataset(RelabeledDataset(dataset, fold.labels)), 32, shuffle=True))
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for x, label, index in loader:
            logits = model(x)
            tracker.update(logits, label, index)
            optimizer.zero_grad()
            cross_entropy(logits, label).backward()
            optimizer.step()
        tracker.end_epoch()  # merges the workers
    return tracker


def train_folds(config):
    with TemporaryDirectory() as folder:
        for fold in config["folds"]:
            report(train(fold), {"fold": fold.number}, folder, name=f"fold{fold.number}")


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100_000_000)
both = folds(labels, num_classes=10)
workers, storage = ScalingConfig(num_workers=2), RunConfig(storage_path=str(Path("scans/ray-storage").resolve()))
result = TorchTrainer(train_folds, train_loop_config={"folds": both}, scaling_config=workers, run_config=storage).fit()
runs = [load(result, name=f"fold{fold.number}").run(fold, class_names=list("0123456789")) for fold in both]
scan = Scan.of(runs, out="scans/ray")
print(f"{scan.verdicts}; {scan.verdicts.is_flagged[is_flipped].mean():.0%} of the flipped labels are among them")
scan.report()
