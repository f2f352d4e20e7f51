"""Keras 3: sample numbers travel with the labels, and a callback shows every training batch to a tracker.

    callback = watch(model, tracker)
    model.fit(x, indexed(fold.labels), epochs=10, callbacks=[callback])

A leaf: nothing else in undermargin imports this module.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from undermargin import Tracker
from undermargin.adapters._extras import require
from undermargin.errors import InputError

keras = require("keras", "keras")

LABEL, INDEX = "undermargin_label", "undermargin_index"


def indexed(labels: npt.ArrayLike, indices: npt.ArrayLike | None = None) -> dict[str, npt.NDArray[Any]]:
    """Labels together with their sample numbers, as the `y` of `fit` or of the batches of a data set.

    `indices` are the positions in the training set; without them the labels are taken to be all of it, in order.
    """
    given = np.asarray(labels)
    positions = np.arange(len(given)) if indices is None else np.asarray(indices)
    if len(positions) != len(given):
        raise InputError(f"{len(positions)} indices for {len(given)} labels; expected one each")
    return {LABEL: given, INDEX: positions}


def watch(model: Any, tracker: Tracker, *, from_logits: bool | None = None) -> "TrackerCallback":
    """A callback for `model.fit`, whose `y` must come from `indexed`; until training ends, the model unpacks it.

    `from_logits` says whether the model's output are logits; by default the model's loss is asked.
    """
    return TrackerCallback(model, tracker, from_logits)


class TrackerCallback(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
    """Feeds the training batches of one `fit` to a tracker; made by `watch`."""

    def __init__(self, model: Any, tracker: Tracker, from_logits: bool | None) -> None:
        super().__init__()
        self.tracker, self.from_logits = tracker, from_logits
        self._observe: Callable[[Any, Any, Any], None] | None = None
        # Keras looks at the first batch before any callback hears of the training, so the model must know already.
        # Both are public methods that users may override; as attributes of this one model they leave the class alone.
        for name, make in (("compute_loss", self._loss), ("compute_metrics", self._metrics)):
            setattr(model, name, make(model, _original(model, name)))
        model.train_function = None  # one that was compiled before would not call them

    def _loss(self, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        knows_training = "training" in signature(original).parameters

        def compute_loss(
            x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
        ) -> Any:
            if _is_packed(y):
                _check(model, y_pred)
                if training:
                    if self._observe is None:  # only now is the model compiled for sure
                        self._observe = self._observer(model)
                    _deliver(self._observe, y_pred, y[LABEL], y[INDEX])
            y, sample_weight = _labels_of(y), _labels_of(sample_weight)
            return original(x, y, y_pred, sample_weight, **({"training": training} if knows_training else {}))

        compute_loss.original = original  # type: ignore[attr-defined]
        return compute_loss

    def _metrics(self, model: Any, original: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ARG002
        def compute_metrics(x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return original(x, _labels_of(y), y_pred, _labels_of(sample_weight))

        compute_metrics.original = original  # type: ignore[attr-defined]
        return compute_metrics

    def _observer(self, model: Any) -> Callable[[Any, Any, Any], None]:
        is_logits = _is_logits(model) if self.from_logits is None else self.from_logits

        def observe(outputs: Any, labels: Any, indices: Any) -> None:
            logits, chosen = _tensor(outputs), _tensor(labels)
            chosen = chosen.argmax(1) if chosen.ndim == 2 and chosen.shape[1] > 1 else chosen.reshape(-1).long()
            with torch.enable_grad():  # other backends train outside of torch
                self.tracker.update(logits if is_logits else _logs(logits), chosen, _tensor(indices))

        return observe

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Close the tracker's epoch, once all its batches have arrived."""
        _wait()
        self.tracker.end_epoch()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Leave the model as it was."""
        for name in ("compute_loss", "compute_metrics"):
            setattr(self.model, name, _original(self.model, name))
        self.model.train_function = None


def _original(model: Any, name: str) -> Callable[..., Any]:
    """A model's own method, under what earlier callbacks put over it."""
    method = getattr(model, name)
    while hasattr(method, "original"):
        method = method.original
    return method  # type: ignore[no-any-return]


def _is_packed(y: Any) -> bool:
    return isinstance(y, Mapping) and INDEX in y


def _labels_of(given: Any) -> Any:
    """What belongs to the labels: of `y`, and of sample weights, which Keras hands out to every part of `y`."""
    return given[LABEL] if _is_packed(given) else given


def _check(model: Any, outputs: Any) -> None:
    if isinstance(outputs, (list, tuple, Mapping)):
        raise InputError(f"the model has {len(outputs)} outputs; expected one, with a logit or probability per class")
    if keras.backend.backend() == "tensorflow" and model.jit_compile and not model.run_eagerly:
        raise InputError("TensorFlow's XLA cannot show a batch to Python; pass jit_compile=False to model.compile()")


def _is_logits(model: Any) -> bool:
    """What the model's loss says of the model's output."""
    loss = model.loss
    if isinstance(loss, str):
        return False  # by its name a loss is taken with its defaults, and by default outputs are probabilities
    found = getattr(loss, "from_logits", None)
    if found is None:
        raise InputError(
            f"the loss {getattr(loss, 'name', loss)!r} does not say whether the model's outputs are logits; "
            "pass from_logits=True or False to watch()"
        )
    return bool(found)


def _logs(probabilities: Tensor) -> Tensor:
    """Logarithms, whose margins are those of the logits; one probability stands for a class and its opposite."""
    if probabilities.ndim == 1 or probabilities.shape[1] == 1:
        probabilities = probabilities.reshape(-1, 1)
        probabilities = torch.cat((1 - probabilities, probabilities), 1)
    return probabilities.detach().float().clamp(min=torch.finfo(torch.float32).tiny).log()


def _tensor(values: Any) -> Tensor:
    return values if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


def _deliver(observe: Callable[[Any, Any, Any], None], outputs: Any, labels: Any, indices: Any) -> None:
    """Call `observe` with the batch's values; where the step is compiled, whenever it is run."""
    backend = keras.backend.backend()
    if backend == "jax":
        require("jax", "keras").debug.callback(observe, outputs, labels, indices, ordered=True)
    elif backend == "tensorflow":
        require("tensorflow", "keras").numpy_function(observe, (outputs, labels, indices), (), stateful=True)
    else:
        observe(outputs, labels, indices)


def _wait() -> None:
    """JAX runs ahead of Python; what it still holds back belongs to this epoch."""
    if keras.backend.backend() == "jax":
        require("jax", "keras").effects_barrier()
