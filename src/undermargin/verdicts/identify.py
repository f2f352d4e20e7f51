"""From runs to verdicts: flagged if every run that judged a sample flags it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs import Cutoff, choose, find
from undermargin.cutoffs.percentile import FEW_THRESHOLD_SAMPLES, percentile_interval
from undermargin.errors import IdentifyError
from undermargin.tracking.run import Run
from undermargin.verdicts.record import FLAGGED, KEPT, UNJUDGED, Verdicts


def identify(
    runs: Run | Sequence[Run],
    cutoff: str | float | Cutoff = "paper",
    *,
    percentile: float | None = None,
    left_out: Sequence[int] = (),
) -> Verdicts:
    """Judge every sample from one or more runs of the same data set.

    `percentile` is another one of the threshold samples than the 99th.
    `left_out` are samples that were not trained on by intention: nobody wonders that they were not observed.

    >>> accuses = Run(scores=[9, 0, 1, 9], is_threshold=[False, False, True, False])
    >>> acquits = Run(scores=[9, 9, 9, 1], is_threshold=[False, False, False, True])
    >>> identify([accuses, accuses])[1], identify([accuses, acquits])[1]
    ('flagged', 'kept')
    """
    runs = [runs] if isinstance(runs, Run) else list(runs)
    _check(runs)
    rule = choose(cutoff, share=percentile)
    name = cutoff if isinstance(cutoff, str) else rule.description
    values = [find(rule, run, name=repr(name)) for run in runs]

    accusing = np.zeros(runs[0].num_samples, np.int16)
    judged_by = np.zeros(runs[0].num_samples, np.int16)
    score, excess = np.zeros(runs[0].num_samples), np.zeros(runs[0].num_samples)
    for run, value in zip(runs, values, strict=True):
        judged = run.judged
        difference = run.scores - (value[run.labels] if isinstance(value, np.ndarray) else value)
        accusing += judged & ((difference < 0) if rule.is_strict else (difference <= 0))
        judged_by += judged
        score += np.where(judged, run.scores, 0)
        excess += np.where(judged, difference, 0)
    with np.errstate(invalid="ignore"):
        score, excess = score / judged_by, excess / judged_by
    codes = np.where(judged_by == 0, UNJUDGED, np.where(accusing == judged_by, FLAGGED, KEPT)).astype(np.int8)

    labels = _first(runs, "labels")
    suggested, confidence = _suggestions(runs, labels, codes)
    return Verdicts(
        codes=codes,
        scores=score,
        excess=excess,
        judged_by=judged_by,
        fold_scores=[np.where(run.judged, run.scores, np.nan).astype(np.float32) for run in runs],
        labels=labels,
        ids=_first(runs, "ids"),
        class_names=_first(runs, "class_names"),
        suggested_labels=suggested,
        suggestion_confidence=confidence,
        about=_about(runs, rule, str(name), values, left_out),
    )


def _first(runs: Sequence[Run], name: str) -> Any:
    """What the first run says that says anything about it."""
    return next((value for run in runs if (value := getattr(run, name)) is not None), None)


def _check(runs: Sequence[Run]) -> None:
    if not runs:
        raise IdentifyError("there are no runs to judge from")
    sizes = sorted({run.num_samples for run in runs})
    if len(sizes) > 1:
        raise IdentifyError(f"the runs have {' and '.join(map(str, sizes))} samples; expected one data set")
    names = sorted({run.score for run in runs})
    if len(names) > 1:
        raise IdentifyError(f"the runs hold different scores: {', '.join(names)}; expected the same in all")
    for run in runs[1:]:
        if run.labels is not None and runs[0].labels is not None and not np.array_equal(run.labels, runs[0].labels):
            raise IdentifyError("the runs disagree about the samples' labels; are they of one data set?")
        if run.ids is not None and runs[0].ids is not None and run.ids != runs[0].ids:
            raise IdentifyError("the runs disagree about the samples' ids; are they of one data set?")
        if None not in (run.class_names, runs[0].class_names) and run.class_names != runs[0].class_names:
            raise IdentifyError("the runs disagree about the names of the classes; are they of one data set?")


def _suggestions(
    runs: Sequence[Run], labels: npt.NDArray[np.int64] | None, codes: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.float64] | None]:
    """What each label should perhaps be, and how sure that is: the strongest rival where flagged, else the label.

    A flagged sample that no class ever beat has no suggestion, nor has an unjudged one: -1. The surest of the runs that
    judged a sample speaks; where they differ, its word is worth less.
    """
    able = [
        (run.judged, run.suggested_labels, run.suggestion_confidence)
        for run in runs
        if run.suggested_labels is not None and run.suggestion_confidence is not None
    ]
    if not able:
        return None, None
    classes = np.array([np.where(judged, suggested, -1) for judged, suggested, _ in able])
    shares = np.array([np.nan_to_num(share) for *_, share in able]) * (classes >= 0)
    rival = np.take_along_axis(classes, shares.argmax(0)[None], 0)[0].astype(np.int64)
    judged_by = np.sum([judged for judged, *_ in able], axis=0)
    confidence = (shares * (classes == rival)).sum(0) / np.maximum(judged_by, 1)
    confidence[codes == UNJUDGED] = np.nan
    if labels is None:
        return rival, confidence
    is_kept = codes == KEPT
    return np.where(is_kept, labels, rival), np.where(is_kept, 1 - confidence, confidence)


def _about(
    runs: Sequence[Run], rule: Cutoff, name: str, values: Sequence[Any], left_out: Sequence[int]
) -> dict[str, Any]:
    """What the summary says of the cutoff."""
    about: dict[str, Any] = {
        "score": runs[0].score,
        "cutoff": {
            "name": name,
            "description": rule.description,
            "values": [value.tolist() if isinstance(value, np.ndarray) else value for value in values],
        },
        "notes": [],
    }
    if rule.explain is not None:
        about["cutoff"]["reason"] = rule.explain(runs[0])
    if rule.share is not None:
        share = rule.share
        counts = [int((run.is_threshold & ~np.isnan(run.scores)).sum()) for run in runs]
        about["cutoff"] |= {
            "num_threshold_samples": counts,
            "interval": [[_finite(end) for end in percentile_interval(run, share)] for run in runs],
        }
        if min(counts) < FEW_THRESHOLD_SAMPLES:
            about["notes"].append(
                f"only {min(counts)} threshold samples: a percentile of theirs is hardly more than their maximum"
            )
    highest = [run.scores[run.judged].max() for run in runs]
    if any(np.min(value) >= most for value, most in zip(values, highest, strict=True)):
        about["notes"].append("the cutoff is above all scores, or ties with the highest: it tells nobody apart")
    is_unobserved = np.all([np.isnan(run.scores) for run in runs], axis=0)
    is_unobserved[list(left_out)] = False
    if unobserved := int(is_unobserved.sum()):
        about["notes"].append(
            f"{unobserved} of {runs[0].num_samples} samples were never observed and stay unjudged; "
            "does the loader drop the last batch or subsample?"
        )
    return about


def _finite(number: float) -> float | None:
    """An end of an interval, for files: JSON has no infinity."""
    return number if np.isfinite(number) else None
