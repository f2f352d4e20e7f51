"""A Lightning module that writes down what it saw, an outage, and a short training."""

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch.nn import functional as F

from tests.adapters.torch_support import NUM_CLASSES, Blobs, Stream
from undermargin import Tracker
from undermargin.adapters.lightning import TrackerCallback


class Classifier(LightningModule):
    """`returns` is "logits" (beside the loss), "loss" alone or "nothing" (manual optimization)."""

    def __init__(self, returns="logits", *, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Linear(4, 8)
        self.net = torch.nn.Sequential(self.body, torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(8, 3))
        self.returns = returns
        self.automatic_optimization = returns != "nothing"
        self.stream, self.losses = Stream(), []

    def training_step(self, batch, batch_idx):
        x, labels, *_ = batch.values() if isinstance(batch, dict) else batch
        self.num_entries = len(batch)
        logits = self.net(x)
        loss = F.cross_entropy(logits, labels)
        self.stream.write(self.current_epoch, x, labels, logits)
        self.losses.append(loss.item())
        return {"logits": {"loss": loss, "logits": logits}, "loss": loss, "nothing": None}[self.returns]

    def validation_step(self, batch, batch_idx):
        self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Outage(Callback):
    """Ends a training the hard way, before a batch of an epoch."""

    def __init__(self, epoch, batch):
        self.when = (epoch, batch)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.current_epoch, batch_idx) == self.when:
            raise InterruptedError


def fit(tmp_path, batches, *callbacks, module=None, validation=None, checkpoint=None, **options):
    """Train four epochs; the module."""
    module = Classifier() if module is None else module
    trainer = Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
        callbacks=list(callbacks),
        **{"enable_checkpointing": False} | options,
    )
    trainer.fit(module, batches, validation, ckpt_path=checkpoint)
    return module


def callback(**options):
    return TrackerCallback(Tracker(len(Blobs()), suggest=NUM_CLASSES), **options)
