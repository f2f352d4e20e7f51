"""Verdicts in numbers: what the terminal, the report and summary.json say."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from undermargin.verdicts.record import Verdicts

MAX_CONFUSIONS = 20


def summarise(verdicts: "Verdicts") -> dict[str, Any]:
    """Counts, cutoffs, a row a class, the strongest confusions: plain data, ready for JSON."""
    num_flagged, num_kept = int(verdicts.is_flagged.sum()), int(verdicts.is_kept.sum())
    judged = num_flagged + num_kept
    estimate = verdicts.about.get("estimate", {})
    return {
        "num_samples": len(verdicts),
        "num_flagged": num_flagged,
        "num_kept": num_kept,
        "num_unjudged": len(verdicts) - judged,
        "flagged_share": num_flagged / len(verdicts) if len(verdicts) else None,
        "estimated_noise_rate": estimate.get("noise_rate"),
        "estimated_mislabeled": _mislabeled(estimate, len(verdicts)),
        **verdicts.about,
        "classes": _classes(verdicts),
        "confusions": _confusions(verdicts),
    }


def _mislabeled(estimate: dict[str, Any], num_samples: int) -> dict[str, int] | None:
    """How many labels are wrong, with a 90 % interval; None where the runs cannot say."""
    if "noise_rate" not in estimate:
        return None
    low, high = estimate["interval"]
    shares = {"number": estimate["noise_rate"], "low": low, "high": high}
    return {name: round(share * num_samples) for name, share in shares.items()}


def _classes(verdicts: "Verdicts") -> list[dict[str, Any]]:
    """A row a class: how many samples, how many flagged."""
    if verdicts.labels is None:
        return []
    size = len(verdicts.classes)
    counts = np.bincount(verdicts.labels, minlength=size)
    flagged = np.bincount(verdicts.labels[verdicts.is_flagged], minlength=size)
    return [
        {
            "label": verdicts.name(label),
            "num_samples": int(counts[label]),
            "num_flagged": int(flagged[label]),
            "flagged_share": flagged[label] / counts[label] if counts[label] else None,
        }
        for label in range(size)
    ]


def _confusions(verdicts: "Verdicts") -> list[dict[str, Any]]:
    """Which labels look like which others, among the flagged samples, most frequent first."""
    if verdicts.labels is None or verdicts.suggested_labels is None:
        return []
    counted = verdicts.is_flagged & (verdicts.suggested_labels >= 0) & (verdicts.suggested_labels != verdicts.labels)
    size = len(verdicts.classes)
    pairs, counts = np.unique(verdicts.labels[counted] * size + verdicts.suggested_labels[counted], return_counts=True)
    strongest = np.argsort(-counts, kind="stable")[:MAX_CONFUSIONS]
    return [
        {
            "label": verdicts.name(int(pairs[k]) // size),
            "suggested_label": verdicts.name(int(pairs[k]) % size),
            "num_samples": int(counts[k]),
        }
        for k in strongest
    ]
