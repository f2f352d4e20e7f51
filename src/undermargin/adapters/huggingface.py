"""Hugging Face: a stock `Trainer`, observed from outside.

    trainer = Trainer(model, args, train_dataset=IndexedDataset(dataset), ...)
    observe(trainer, tracker)
    trainer.train()
    run = tracker.run(fold, class_names=class_names(model, fold.num_classes))

A leaf: nothing in undermargin imports it.
"""

import warnings
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.adapters._tokens import TokenIndex, per_sentence
from undermargin.errors import InputError, UndermarginWarning

__all__ = ["TokenIndex", "class_names", "observe", "per_sentence"]

STATE_FILE = "undermargin.safetensors"  # in each of the trainer's checkpoints

_TrainerCallback: Any = require("transformers", "huggingface").TrainerCallback


def observe(trainer: Any, tracker: Tracker, *, index: str = "index", tokens: TokenIndex | None = None) -> None:
    """Show every training step of a `Trainer` to `tracker`; call it before `trainer.train()`.

    `index` is the column of the training set that holds each sample's index, a whole number; `IndexedDataset` adds it.
    It is kept through the collator, and the model does not see it. Evaluation is not observed. Epochs end with the
    trainer's; the tracker is saved in the trainer's checkpoints and resumed with `train(resume_from_checkpoint=...)`.

    For token classification give `tokens`: a sample is then a labeled token, and `index` the sentence's.
    """
    if any(isinstance(callback, _Watching) for callback in trainer.callback_handler.callbacks):
        raise InputError("this trainer is observed already; make a new Trainer for another tracker")
    if trainer.args.auto_find_batch_size:
        raise InputError(
            "auto_find_batch_size=True starts the training again when memory runs out, and steps before that would be "
            "observed too. Set per_device_train_batch_size instead"
        )
    watching = _Watching(trainer, tracker, index, tokens)
    trainer.compute_loss = watching.around_compute_loss(trainer.compute_loss)
    trainer.get_train_dataloader = watching.around_get_train_dataloader(trainer.get_train_dataloader)
    trainer.train = watching.around_train(trainer.train)
    trainer.add_callback(watching)


def class_names(model: Any, num_classes: int) -> list[str]:
    """Names of the first `num_classes` outputs, from the model's `id2label`; the extra label is not among them."""
    names = model.config.id2label
    if len(names) < num_classes:
        raise InputError(f"the model's id2label has {len(names)} entries, expected at least {num_classes}")
    return [names[number] for number in range(num_classes)]


class _Watching(_TrainerCallback):  # type: ignore[misc]
    """What `observe` attaches to a trainer: its callback, and what is put around three of its methods."""

    def __init__(self, trainer: Any, tracker: Tracker, index: str, tokens: TokenIndex | None) -> None:
        self.trainer = trainer
        self.tracker = tracker
        self.index = index
        self.tokens = tokens
        self.is_epoch_open = False

    def around_compute_loss(self, compute_loss: Any) -> Any:
        """Take the indices off the inputs, and observe the logits of training steps."""

        @wraps(compute_loss)
        def observed(model: Any, inputs: Any, return_outputs: bool = False, *rest: Any, **named: Any) -> Any:
            indices = inputs.pop(self.index, None)
            if not model.training:  # evaluation
                return compute_loss(model, inputs, return_outputs, *rest, **named)
            if indices is None:
                raise InputError(_no_index(self.index, inputs))
            labels = inputs.get(self.trainer.label_names[0])  # now: label smoothing takes them out
            result = compute_loss(model, inputs, True, *rest, **named)
            if not isinstance(result, tuple):
                raise InputError(
                    "compute_loss returned the loss alone; with return_outputs=True it must return outputs too"
                )
            self._update(_logits(result[1]), labels, indices)
            return result if return_outputs else result[0]

        return observed

    def _update(self, logits: Any, labels: Any, indices: Any) -> None:
        if labels is None:
            raise InputError(
                f"the batch has no entry {self.trainer.label_names[0]!r}; name the labels in "
                "TrainingArguments(label_names=[...])"
            )
        if self.tokens is not None:
            indices = self.tokens.indices(indices, labels).flatten()
            logits, labels = logits.flatten(0, 1), labels.flatten()
        elif logits.ndim == 3:
            raise InputError(
                f"logits have shape {tuple(logits.shape)}: one row for each token. Pass "
                "observe(trainer, tracker, tokens=TokenIndex(labels)) and a Tracker of tokens.num_samples samples"
            )
        self.tracker.update(logits, labels, indices)

    def around_get_train_dataloader(self, get_train_dataloader: Any) -> Any:
        """Keep the index column where the trainer drops the columns that the model does not take."""

        @wraps(get_train_dataloader)
        def keeping() -> Any:
            trainer = self.trainer
            if not trainer.args.remove_unused_columns:
                return get_train_dataloader()
            try:  # private names, seen in transformers 5.22
                trainer._set_signature_columns_if_needed()
                columns = trainer._signature_columns
                trainer._signature_columns = [*columns, self.index]
            except (AttributeError, TypeError):
                raise InputError(
                    f"this version of transformers does not let the column {self.index!r} through to the model's "
                    "inputs. Pass TrainingArguments(remove_unused_columns=False) and a training set that has only the "
                    "columns that the model takes, and this one"
                ) from None
            try:
                return get_train_dataloader()
            finally:
                trainer._signature_columns = columns  # evaluation drops the column as before

        return keeping

    def around_train(self, train: Any) -> Any:
        """Load the tracker from the checkpoint that the training resumes from."""

        @wraps(train)
        def resuming(resume_from_checkpoint: Any = None, *rest: Any, **named: Any) -> Any:
            folder = resume_from_checkpoint
            if folder is True:
                folder = require("transformers.trainer_utils", "huggingface").get_last_checkpoint(
                    self.trainer.args.output_dir
                )
            if folder:
                self._load(Path(folder) / STATE_FILE)
            return train(resume_from_checkpoint, *rest, **named)

        return resuming

    def _load(self, path: Path) -> None:
        if path.exists():
            self.tracker.load_state_dict(Tracker.load(path).state_dict())
        else:
            warnings.warn(
                f"{path.parent} holds no {STATE_FILE}: it was saved by a training that was not observed, and the "
                "epochs before it do not count",
                UndermarginWarning,
                stacklevel=3,
            )

    def on_train_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:  # noqa: ARG002
        if state.is_hyper_param_search:
            raise InputError("a search trains many models, a tracker watches one training; observe the final one")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:  # noqa: ARG002
        self.is_epoch_open = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:  # noqa: ARG002
        self._end_epoch()

    def on_save(self, args: Any, state: Any, control: Any, **named: Any) -> None:  # noqa: ARG002
        # saved after the last step of an epoch but before its end: a resumed training starts with the next one
        if state.epoch == int(state.epoch):
            self._end_epoch()
        self.tracker.reduce()  # every process comes here, one of them writes
        if args.should_save:
            self.tracker.save(Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE_FILE)

    def _end_epoch(self) -> None:
        if self.is_epoch_open:
            self.tracker.end_epoch()
            self.is_epoch_open = False


def _logits(outputs: Any) -> Any:
    """The logits of a model's outputs; in a tuple they come first, or after the loss, which is one number."""
    if isinstance(outputs, Mapping):
        if "logits" not in outputs:
            raise InputError(f"the model's outputs have no entry 'logits', only {', '.join(outputs)}")
        return outputs["logits"]
    if isinstance(outputs, (tuple, list)):
        return outputs[1] if outputs[0].ndim == 0 else outputs[0]
    return getattr(outputs, "logits", outputs)


def _no_index(index: str, inputs: Any) -> str:
    return (
        f"the batch has no entry {index!r}, only {', '.join(inputs)}. Train on IndexedDataset(dataset), or on a data "
        f"set with a column {index!r} of whole numbers (collators drop text)"
    )
