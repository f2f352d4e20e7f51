"""Which samples the page shows, and in which order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError
from undermargin.scans.decisions import Entry
from undermargin.verdicts.record import NAMES, Verdicts

Indices = npt.NDArray[np.int64]
Standing = Literal["any", "open", "decided", "keep", "relabel", "drop"]

NUM_NEIGHBOURS = 4


@dataclass(frozen=True)
class Filters:
    """Which samples to show; None stands for any."""

    verdict: Literal["flagged", "kept", "unjudged"] | None = "flagged"
    label: str | None = None
    suggested: str | None = None
    standing: Standing = "open"
    order: Literal["suspicion", "random"] = "suspicion"


def select(verdicts: Verdicts, filters: Filters, entries: Mapping[int, Entry]) -> Indices:
    """Indices of the selected samples, most suspicious first, or shuffled in the same way every time."""
    chosen = np.ones(len(verdicts), bool)
    if filters.verdict is not None:
        chosen &= verdicts.codes == NAMES.index(filters.verdict)
    for name, labels in ((filters.label, verdicts.labels), (filters.suggested, verdicts.suggested_labels)):
        if name is not None:
            chosen &= labels == class_number(verdicts, name) if labels is not None else False
    if filters.standing != "any":
        chosen &= _stands(filters.standing, entries, len(verdicts))
    indices = verdicts.order[chosen[verdicts.order]]
    if filters.order == "random":
        # one shuffle of all samples, so that a narrower filter keeps the order of a wider one
        place = np.random.default_rng(0).permutation(len(verdicts))
        indices = indices[np.argsort(place[indices])]
    return indices


def _stands(standing: Standing, entries: Mapping[int, Entry], num_samples: int) -> npt.NDArray[np.bool_]:
    actions = {index: entry.decision.action for index, entry in entries.items() if entry.decision is not None}
    wanted = [index for index, action in actions.items() if standing in ("open", "decided", action)]
    found = np.zeros(num_samples, bool)
    found[wanted] = True
    return ~found if standing == "open" else found


def class_number(verdicts: Verdicts, name: str) -> int:
    """The number of the class with this name."""
    names = class_names(verdicts)
    if name not in names:
        raise InputError(
            f"there is no class {name!r}; classes are {', '.join(names[:20])}{', ...' * (len(names) > 20)}"
        )
    return names.index(name)


def class_names(verdicts: Verdicts) -> list[str]:
    """The names of the classes; their numbers where they have no names."""
    if verdicts.class_names is not None:
        return list(verdicts.class_names)
    highest = [labels.max() for labels in (verdicts.labels, verdicts.suggested_labels) if labels is not None]
    return [str(number) for number in range(int(max(highest, default=-1)) + 1)]


def neighbours(verdicts: Verdicts, label: int, *, of: int) -> list[int]:
    """Some kept samples of a class to compare a sample with; for the same sample always the same ones."""
    if verdicts.labels is None or label < 0:
        return []
    kept = np.flatnonzero(verdicts.is_kept & (verdicts.labels == label))
    kept = kept[kept != of]
    size = min(NUM_NEIGHBOURS, len(kept))
    return [int(index) for index in np.random.default_rng(of).choice(kept, size, replace=False)]
