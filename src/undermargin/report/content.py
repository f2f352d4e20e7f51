"""What a report says, as plain data ready for JSON; how it looks is the page's business."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from undermargin.errors import InputError
from undermargin.report.confusions import confusions
from undermargin.report.gallery import gallery
from undermargin.report.groups import by_column, by_label
from undermargin.report.histogram import histogram
from undermargin.report.lines import lines
from undermargin.scans.effects import overruled
from undermargin.scans.folder import Folder

NUM_SAMPLES = 200  # shown, unless told otherwise
MAX_SAMPLES = 5000
COUNTS = ("num_samples", "num_flagged", "num_kept", "num_unjudged", "flagged_share", "estimated_noise_rate")
COUNTED = (*COUNTS, "classes", "num_decided")


def describe(
    folder: Folder, *, by: Sequence[str] = (), num_samples: int = NUM_SAMPLES, has_thumbnails: bool = True
) -> dict[str, Any]:
    """Everything that the page of a finished scan shows: its verdicts, with people's decisions in them."""
    if not 0 <= num_samples <= MAX_SAMPLES:
        raise InputError(f"{num_samples} samples are asked for, expected 0 to {MAX_SAMPLES}: the page must stay light")
    config, summary = folder.read_json("config.json"), folder.read_json("summary.json")
    verdicts = overruled(folder.verdicts(), folder.decided())
    summary |= {name: value for name, value in verdicts.summary().items() if name in COUNTED}
    is_shown = has_thumbnails or len(by) > 0
    originals = folder.confirmed_originals(verdicts) if is_shown else folder.originals(verdicts)
    return {
        "scan": folder.path.resolve().name,
        "kind": config.get("kind"),
        **{name: summary[name] for name in COUNTS},
        "estimated_mislabeled": summary.get("estimated_mislabeled"),
        "num_classes": len(summary["classes"]),
        "score": summary["score"],
        "cutoff": summary["cutoff"],
        "notes": [*summary["notes"], *_decided(summary.get("num_decided", 0))],
        "histogram": histogram(verdicts, folder.runs(), summary["cutoff"]["values"]),
        "gallery": gallery(verdicts, originals, num_samples, has_thumbnails=has_thumbnails),
        "groups": [
            *([by_label(verdicts)] if summary["classes"] else []),
            *(by_column(verdicts, name, originals.column(name)) for name in by),
        ],
        "confusions": confusions(verdicts),
        "trajectories": lines(folder, verdicts),
        "origin": _origin(config, summary),
    }


def _decided(number: int) -> list[str]:
    return [f"{number:,} samples follow decisions made in review"] if number else []


def _origin(config: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    """How the numbers came about. Of the data's place only the last name: a report may be passed on."""
    found = config.get("source")
    source: dict[str, Any] = found if isinstance(found, dict) else {"name": found}
    told = {
        "data": Path(source["path"]).name if "path" in source else source.get("name"),
        "format": source.get("format"),
        "where": source.get("where"),
        "num_skipped": summary.get("num_skipped"),
        "fingerprint": config.get("fingerprint"),
        "model": config.get("model"),
        "budget": config.get("budget"),
        "procedure": config.get("procedure"),
        "noise": config.get("noise"),
        "seed": config.get("seed"),
        "versions": config.get("versions"),
        "num_threads": config.get("num_threads"),
        "seconds": summary.get("seconds"),
        "samples_per_second": summary.get("samples_per_second"),
    }
    return {name: value for name, value in told.items() if value not in (None, {}, [])}
