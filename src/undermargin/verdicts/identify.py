"""From runs to verdicts: a cutoff per run, or all runs judged together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from undermargin.cutoffs import Cutoff, Found, choose, find
from undermargin.cutoffs.percentile import FEW_THRESHOLD_SAMPLES, percentile_interval
from undermargin.cutoffs.probability import Judgment, judge
from undermargin.errors import IdentifyError
from undermargin.tracking.run import Run
from undermargin.verdicts.limits import by_budget, by_precision
from undermargin.verdicts.notes import notes_on_judgment, notes_on_scores
from undermargin.verdicts.record import FLAGGED, KEPT, UNJUDGED, Verdicts

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def identify(
    runs: Run | Sequence[Run],
    cutoff: str | float | Cutoff = "paper",
    *,
    percentile: float | None = None,
    precision: float | None = None,
    budget: int | None = None,
    left_out: Sequence[int] = (),
) -> Verdicts:
    """Judge every sample from one or more runs of the same data set.

    With a cutoff per run, a sample is flagged only if every run that judged it flags it. The cutoff `probability`
    judges all runs together and flags a label that is more likely wrong than right.

    Args:
        runs: What one or more trainings left behind.
        cutoff: A row of the table of cutoffs, "rate:0.4" for a known noise rate, a number, or a Cutoff.
        percentile: Percentile of the threshold samples' scores, for rules that use one (default: 99).
        precision: Flag as many samples as keep this expected precision (`probability` only).
        budget: Flag this many samples, those most likely mislabeled (`probability` only).
        left_out: Samples left out of the training on purpose; no note is added for them.

    >>> accuses = Run(scores=[9, 0, 1, 9], is_threshold=[False, False, True, False])
    >>> acquits = Run(scores=[9, 9, 9, 1], is_threshold=[False, False, False, True])
    >>> identify([accuses, accuses])[1], identify([accuses, acquits])[1]
    ('flagged', 'kept')
    """
    runs = [runs] if isinstance(runs, Run) else list(runs)
    _check(runs)
    rule = choose(cutoff, share=percentile)
    name = cutoff if isinstance(cutoff, str) else rule.description
    if rule.judge is not None:
        return _by_probability(runs, rule, name, rule.judge(runs), precision, budget)
    if precision is not None or budget is not None:
        raise IdentifyError(f"precision and budget need the cutoff 'probability', not {name!r}")
    return _by_cutoff(runs, rule, name, left_out)


def _by_probability(
    runs: Sequence[Run], rule: Cutoff, name: str, found: Judgment, precision: float | None, budget: int | None
) -> Verdicts:
    """A label is flagged when it is more likely wrong than right, or as far as a precision or a budget reaches."""
    odds = found.log_odds
    if budget is not None:
        is_flagged = by_budget(odds, budget)
    elif precision is not None:
        is_flagged = by_precision(odds, precision)
    else:
        is_flagged = odds > 0
    if not found.model.can_tell and budget is None:
        is_flagged = np.zeros(len(odds), bool)
    codes = np.where(np.isnan(odds), UNJUDGED, np.where(is_flagged, FLAGGED, KEPT)).astype(np.int8)
    scores, judged_by = _mean_scores(runs)
    limit = {"precision": precision, "budget": budget}
    about = _about(runs, rule, name, []) | {"estimate": _estimate(found)}
    about["cutoff"] |= {key: value for key, value in limit.items() if value is not None}
    about["notes"] = notes_on_judgment(found, is_flagged, _first(runs, "class_names"))
    return _verdicts(runs, codes, scores, -odds, judged_by, found, about)


def _by_cutoff(runs: Sequence[Run], rule: Cutoff, name: str, left_out: Sequence[int]) -> Verdicts:
    """A sample is flagged if every run that judged it flags it."""
    found = [find(rule, run, name=repr(name)) for run in runs]
    accusing = np.zeros(runs[0].num_samples, np.int16)
    excess = np.zeros(runs[0].num_samples)
    for run, (value, _) in zip(runs, found, strict=True):
        difference = run.scores - (value[run.labels] if isinstance(value, np.ndarray) else value)
        accusing += run.judged & ((difference < 0) if rule.is_strict else (difference <= 0))
        excess += np.where(run.judged, difference, 0)
    scores, judged_by = _mean_scores(runs)
    with np.errstate(invalid="ignore"):
        excess = excess / judged_by
    codes = np.where(judged_by == 0, UNJUDGED, np.where(accusing == judged_by, FLAGGED, KEPT)).astype(np.int8)
    about = _about(runs, rule, name, found)
    about["notes"] = notes_on_scores(runs, found, about["cutoff"].get("num_threshold_samples"), left_out)
    judgment = judge(runs) if _has_evidence(runs) else None
    if judgment is not None:
        about["estimate"] = _estimate(judgment)
    return _verdicts(runs, codes, scores, excess, judged_by, judgment, about)


def _verdicts(
    runs: Sequence[Run],
    codes: npt.NDArray[np.int8],
    scores: Floats,
    excess: Floats,
    judged_by: npt.NDArray[np.int16],
    judgment: Judgment | None,
    about: dict[str, Any],
) -> Verdicts:
    labels = _first(runs, "labels")
    suggested, confidence = _suggestions(runs, labels, codes)
    more: dict[str, Any] = {}
    if judgment is not None and labels is not None:
        more = {
            "probabilities": expit(judgment.log_odds),
            "alternatives": judgment.alternatives,
            "alternative_shares": judgment.alternative_shares,
        }
        is_kept = codes == KEPT
        suggested = np.where(is_kept, labels, judgment.alternatives[:, 0])
        confidence = np.where(is_kept, 1 - more["probabilities"], judgment.alternative_shares[:, 0])
    return Verdicts(
        codes=codes,
        scores=scores,
        excess=excess,
        judged_by=judged_by,
        fold_scores=[np.where(run.judged, run.scores, np.nan).astype(np.float32) for run in runs],
        labels=labels,
        ids=_first(runs, "ids"),
        class_names=_first(runs, "class_names"),
        suggested_labels=suggested,
        suggestion_confidence=confidence,
        about=about,
        **more,
    )


def _has_evidence(runs: Sequence[Run]) -> bool:
    """Whether P(mislabeled) can be estimated beside the cutoff."""
    return all(run.probabilities is not None and run.has_threshold and run.labels is not None for run in runs)


def _mean_scores(runs: Sequence[Run]) -> tuple[Floats, npt.NDArray[np.int16]]:
    """Mean score over the runs that judged each sample, and how many did: (samples,) twice."""
    total, judged_by = np.zeros(runs[0].num_samples), np.zeros(runs[0].num_samples, np.int16)
    for run in runs:
        total += np.where(run.judged, run.scores, 0)
        judged_by += run.judged
    with np.errstate(invalid="ignore"):
        return total / judged_by, judged_by


def _first(runs: Sequence[Run], name: str) -> Any:
    """The value of a field in the first run that has one."""
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
) -> tuple[npt.NDArray[np.int64] | None, Floats | None]:
    """A better label for each sample and its confidence: the strongest rival where flagged, else the label.

    A flagged sample whose label no class ever beat has no suggestion, and neither has an unjudged one: -1. Where runs
    disagree, the most confident run decides, at a lower confidence.
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


def _about(runs: Sequence[Run], rule: Cutoff, name: str, found: Sequence[Found]) -> dict[str, Any]:
    """What the summary says about the cutoff."""
    cutoff: dict[str, Any] = {
        "name": str(name),
        "description": rule.description,
        "values": [value.tolist() if isinstance(value, np.ndarray) else value for value, _ in found],
    }
    reasons = list(dict.fromkeys(reason for _, reason in found if reason))
    if reasons:
        cutoff["reason"] = "; ".join(reasons)
    if rule.share is not None:
        cutoff["num_threshold_samples"] = [int((run.is_threshold & ~np.isnan(run.scores)).sum()) for run in runs]
        cutoff["interval"] = [[_finite(end) for end in percentile_interval(run, rule.share)] for run in runs]
        cutoff["is_of_few"] = min(cutoff["num_threshold_samples"]) < FEW_THRESHOLD_SAMPLES
    return {"score": runs[0].score, "cutoff": cutoff}


def _estimate(found: Judgment) -> dict[str, Any]:
    """The noise model in numbers, for the summary."""
    model = found.model
    return {
        "noise_rate": model.rate,
        "interval": list(model.interval),
        "disagreement": model.disagreement,
        "skill": model.skill,
        "can_tell": model.can_tell,
        "num_held_out": model.num_held_out,
        "transition": model.transition.round(4).tolist() if len(model.transition) <= 100 else None,
    }


def _finite(number: float) -> float | None:
    """An end of an interval, for files: JSON has no infinity."""
    return number if np.isfinite(number) else None
