"""The arguments of `update`, as checked tensors. Only shapes and types are checked, so nothing waits for the device."""

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undermargin.errors import InputError, ObservationError


def as_logits(given: Any) -> Tensor:
    """Logits (batch, classes); the single logit of a binary model becomes two."""
    if isinstance(given, np.ndarray):
        given = np.require(given, requirements=["C", "W"])  # torch accepts no others; copies if needed
    try:
        logits: Tensor = torch.as_tensor(given)
    except (RuntimeError, TypeError, ValueError):
        raise InputError(
            f"logits are a {type(given).__name__}, expected a tensor (batch, classes). If the model returns an output "
            "object, pass its logits, as in outputs.logits"
        ) from None
    if not logits.is_floating_point():
        raise InputError(f"logits are {logits.dtype}, expected floating point: the model's output before softmax")
    if logits.is_meta:
        raise _no_values("logits")
    if logits.requires_grad:
        logits = logits.detach()
    if logits.ndim == 2 and logits.shape[1] > 1:
        return logits
    if logits.ndim < 2 or (logits.ndim == 2 and logits.shape[1] == 1):  # also a scalar, for a batch of one
        positive = logits.reshape(-1)
        return torch.stack((torch.zeros_like(positive), positive), 1)
    raise InputError(
        f"logits have shape {tuple(logits.shape)}, expected (batch, classes), one row per sample. "
        "Several predictions per sample (segmentation, tokens, multi-label) are not supported"
    )


def as_labels(labels: Any, logits: Tensor) -> Tensor:
    """Class numbers (batch,), on the device of the logits."""
    labels = _as_numbers("labels", labels, logits, "encode class names as 0..num_classes-1")
    if labels.ndim != 1 or labels.is_floating_point():
        raise InputError(
            f"labels have shape {tuple(labels.shape)} and type {labels.dtype}, expected class numbers of shape "
            f"({len(logits)},). If these are class numbers, pass labels.long().view(-1). Soft labels (mixup, manual "
            "smoothing) have no assigned class: pass logits of unmixed samples with their own labels"
        )
    return _matching("labels", labels, logits)


def as_indices(indices: Any, logits: Tensor) -> Tensor:
    """Positions of samples (batch,), on the device of the logits."""
    indices = _as_numbers("indices", indices, logits, "to use names, pass all of them as Tracker(n, ids=names)")
    if indices.ndim != 1 or indices.is_floating_point() or indices.dtype == torch.bool:
        raise InputError(
            f"indices have shape {tuple(indices.shape)} and type {indices.dtype}, expected integers of "
            f"shape ({len(logits)},)"
        )
    return _matching("indices", indices, logits)


def _as_numbers(name: str, given: Any, logits: Tensor, advice: str) -> Tensor:
    """The given numbers as a tensor; empty input is int64, and a scalar is accepted for a batch of one."""
    if not isinstance(given, Tensor):
        array = np.array(given)  # a copy: torch accepts no reversed or read-only arrays
        if array.dtype.kind not in "iubf":
            raise InputError(f"{name} are not numbers (NumPy type {array.dtype}); {advice}")
        given = torch.from_numpy(array if array.size else array.astype(np.int64))
    numbers: Tensor = given if given.numel() else given.long()  # empty input has no dtype
    return numbers.reshape(1) if numbers.ndim == 0 and len(logits) == 1 else numbers


def _matching(name: str, values: Tensor, logits: Tensor) -> Tensor:
    if len(values) != len(logits):
        raise InputError(f"{len(values)} {name} for {len(logits)} rows of logits; expected one per row")
    if values.device != logits.device or values.dtype != torch.int64:
        if values.is_meta:
            raise _no_values(name)
        # a copy to the host must be synchronous: it would be read before it has arrived
        return values.to(logits.device, torch.int64, non_blocking=logits.device.type != "cpu")
    return values


def _no_values(name: str) -> InputError:
    return InputError(
        f"{name} are on the meta device, where tensors have no values; pass the outputs of a real training step"
    )


class Ids:
    """Positions of samples by id. Integer ids are looked up on the device, all others on the host."""

    def __init__(self, ids: Any, num_samples: int) -> None:
        if len(ids) != num_samples:
            raise InputError(f"{len(ids)} ids for {num_samples} samples; expected one per sample")
        names = as_list(ids)
        self.positions = {name: position for position, name in enumerate(names)}
        if len(self.positions) < num_samples:
            raise InputError(f"{num_samples - len(self.positions)} ids occur more than once; ids must be unique")
        self.are_numbers = all(isinstance(name, int) and -(2**63) <= name < 2**63 for name in names)
        if self.are_numbers:
            self.sorted, self.order = torch.tensor(names, dtype=torch.int64).sort()

    @cached_property
    def digest(self) -> str:
        """A hash of the ids and their order."""
        return hashlib.sha256("\n".join(map(repr, self.positions)).encode("utf-8", "surrogatepass")).hexdigest()

    def indices(self, ids: Any, logits: Tensor) -> Tensor:
        """Positions (batch,) of these ids; an unknown integer becomes -1, an unknown name is an error."""
        if self.are_numbers:
            numbers = as_indices(ids, logits)
            if self.sorted.device != numbers.device:
                self.sorted, self.order = self.sorted.to(numbers.device), self.order.to(numbers.device)
            nearest = torch.searchsorted(self.sorted, numbers).clamp(max=len(self.sorted) - 1)
            return self.order[nearest].where(self.sorted[nearest] == numbers, -1)
        names = as_list(ids)
        try:
            return as_indices([self.positions[name] for name in names], logits)
        except KeyError as unknown:
            raise ObservationError(f"id {unknown} is not among the {len(self.positions)} ids of this tracker") from None


def as_list(ids: Any) -> list[Any]:
    """Ids as Python strings and numbers, so that equal ids compare equal."""
    if isinstance(ids, (np.ndarray, Tensor)):
        return list(ids.reshape(-1).tolist())  # a single id may be a scalar
    names = list(ids)
    if names and isinstance(names[0], (np.generic, Tensor)):
        return [name.item() for name in names]
    return names
