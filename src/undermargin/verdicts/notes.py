"""What a user should know before trusting verdicts, one sentence each."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from undermargin.cutoffs import Found
from undermargin.cutoffs.percentile import FEW_THRESHOLD_SAMPLES
from undermargin.cutoffs.probability import Judgment
from undermargin.tracking.run import Run

MANY_FLAGGED = 1 / 3  # of the samples
FEW_HELD_OUT = 100


def notes_on_judgment(
    found: Judgment, is_flagged: npt.NDArray[np.bool_], class_names: Sequence[str] | None
) -> list[str]:
    """Notes on verdicts by P(mislabeled)."""
    model, notes = found.model, []
    if not model.can_tell:
        notes.append(
            "this model cannot tell: it predicts held-out labels no better than class frequencies do, so nothing is "
            "flagged. Only the ranking is left; better features or a better model may help"
        )
    if is_flagged.mean() >= MANY_FLAGGED:
        notes.append(
            f"{is_flagged.mean():.0%} of the samples are flagged: look at some of them before removing any, since at "
            "such rates one error of the model costs many samples"
        )
    if model.num_held_out < FEW_HELD_OUT:
        notes.append(f"the noise rate is estimated from only {model.num_held_out} held-out predictions")
    if found.unlearned:
        names = [str(label) if class_names is None else class_names[label] for label in found.unlearned]
        notes.append(f"too few samples to judge these classes, none of their labels is flagged: {', '.join(names)}")
    return notes


def notes_on_scores(
    runs: Sequence[Run], found: Sequence[Found], num_threshold: Sequence[int] | None, left_out: Sequence[int]
) -> list[str]:
    """Notes on verdicts by a cutoff per run."""
    notes = []
    if num_threshold is not None and min(num_threshold) < FEW_THRESHOLD_SAMPLES:
        notes.append(
            f"only {min(num_threshold)} threshold samples: a percentile of theirs is hardly more than their maximum"
        )
    highest = [run.scores[run.judged].max() for run in runs]
    if any(np.min(value) >= most for (value, _), most in zip(found, highest, strict=True)):
        notes.append("the cutoff is above all scores, or equal to the highest: it separates no samples")
    is_unobserved = np.all([np.isnan(run.scores) for run in runs], axis=0)
    is_unobserved[list(left_out)] = False
    if unobserved := int(is_unobserved.sum()):
        notes.append(
            f"{unobserved} of {runs[0].num_samples} samples were never observed and stay unjudged; "
            "does the loader drop the last batch or subsample?"
        )
    return notes
