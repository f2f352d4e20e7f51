"""Hugging Face's Trainer: one call. A tenth of the digits' labels is flipped on purpose; which ones?"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

from undermargin import IndexedDataset, RelabeledDataset, Scan, Tracker, folds
from undermargin.adapters.huggingface import class_names, observe

images, true_labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
is_flipped = rng.random(len(true_labels)) < 0.1
labels = np.where(is_flipped, (true_labels + rng.integers(1, 10, len(true_labels))) % 10, true_labels)
pixels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
dataset = [{"pixel_values": one, "label": label} for one, label in zip(pixels, labels, strict=True)]

# a small model that needs no download; one more output than there are digits, for the extra label
config = ViTConfig(
    image_size=8,
    patch_size=2,
    num_channels=1,
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=128,
    id2label={**{digit: f"digit {digit}" for digit in range(10)}, 10: "extra"},
)


def train(fold):
    set_seed(fold.number)
    model = ViTForImageClassification(config)
    arguments = TrainingArguments(
        "scans/huggingface-trainer",
        num_train_epochs=10,
        per_device_train_batch_size=64,
        learning_rate=3e-3,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    # threshold samples get the extra label, and every sample its index
    trainer = Trainer(model, arguments, train_dataset=IndexedDataset(RelabeledDataset(dataset, fold.labels)))
    tracker = Tracker(len(dataset), suggest=fold.num_classes)
    observe(trainer, tracker)
    trainer.train()
    return tracker.run(fold, class_names=class_names(model, fold.num_classes))


runs = [train(fold) for fold in folds(labels, num_classes=10)]
scan = Scan.of(runs, out="scans/huggingface")
print(f"{scan.verdicts}; {scan.verdicts.is_flagged[is_flipped].mean():.0%} of the flipped labels are among them")
scan.report()
