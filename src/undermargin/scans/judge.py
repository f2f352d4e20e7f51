"""From a scan's runs to its verdicts: one rule for a new scan and for one that is identified again."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs import choose
from undermargin.errors import IdentifyError
from undermargin.scans.effects import Decided, overruled
from undermargin.scans.folder import Folder
from undermargin.tracking.run import Run
from undermargin.verdicts.identify import identify
from undermargin.verdicts.record import Verdicts


def judge(
    runs: Sequence[Run],
    cutoff: str | float,
    *,
    percentile: float | None,
    precision: float | None = None,
    budget: int | None = None,
    trusted: Decided,
    labels: npt.NDArray[np.int64] | None = None,
) -> Verdicts:
    """Verdicts from runs, with the decisions that the scan trusts applied.

    `labels` are those of the data set: relabeled samples were trained with the label that people gave them.
    """
    left_out = [index for index, decision in trusted.items() if decision.action == "drop"]
    judged = identify(runs, cutoff, percentile=percentile, precision=precision, budget=budget, left_out=left_out)
    return overruled(judged if labels is None else replace(judged, labels=labels), trusted)


def check_limits(cutoff: str | float, precision: float | None, budget: int | None) -> None:
    """Raise for a precision or a budget that the cutoff has no use for, before anything is trained."""
    if (precision is not None or budget is not None) and choose(cutoff).judge is None:
        raise IdentifyError(f"--precision and --budget need the cutoff 'probability', not {cutoff!r}")


def percentile_for(cutoff: str | float, percentile: float | None) -> float | None:
    """A procedure's percentile, where the cutoff has one to replace."""
    return percentile if choose(cutoff).share is not None else None


def own_cutoff(folder: Folder) -> tuple[str | float, float | None]:
    """The cutoff and the percentile that a scan was made with; folders of version 0.1 name it in the summary alone."""
    config = folder.read_json("config.json")
    cutoff = config.get("cutoff", folder.read_json("summary.json")["cutoff"]["name"])
    try:
        return cutoff, percentile_for(cutoff, (config.get("procedure") or {}).get("percentile"))
    except IdentifyError:
        raise IdentifyError(
            f"{folder.path} was judged by {cutoff!r}, which cannot be found by its name; pass a cutoff"
        ) from None
