"""What a scan's control files must hold: checked when they are read, so that a damaged one is one clear error."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from undermargin.errors import FolderError
from undermargin.storage.files import read_regular

NUMBER = (int, float)
OPTIONAL = "?"  # at the end of a name: the entry may be missing or null

# A type or several; a list of one expectation, for each entry; or a dict of expectations, for the entries by name.
CONFIG: Mapping[str, Any] = {
    "source?": (str, {"format": str, "path?": str, "label?": str, "text?": str, "image?": str, "where?": str}),
    "kind?": str,
    "num_samples?": int,
    "class_names?": [str],
    "fingerprint?": str,
    "model?": str,
    "model_name?": str,
    "procedure?": {"percentile?": NUMBER},
    "budget?": dict,
    "versions?": dict,
    "trusted?": dict,
    "cutoff?": (str, *NUMBER),
    "num_folds?": int,
}
SUMMARY: Mapping[str, Any] = {
    "num_samples": int,
    "num_flagged": int,
    "num_kept": int,
    "num_unjudged": int,
    "flagged_share?": NUMBER,
    "score": str,
    "cutoff": {"name": str, "description": str, "values": list, "reason?": str},
    "notes": [str],
    "classes": [{"label": str, "num_samples": int, "num_flagged": int, "flagged_share?": NUMBER}],
    "confusions": [{"label": str, "suggested_label": str, "num_samples": int}],
    "num_decided?": int,
    "epochs?": [int],
    "saved_epochs?": int,
    "seconds?": NUMBER,
    "samples_per_second?": NUMBER,
}
EXPECTED: Mapping[str, Any] = {"config.json": CONFIG, "summary.json": SUMMARY}


def read_control(path: Path) -> Any:
    """The value of a JSON file, of the expected shape; raises FileNotFoundError, and FolderError for anything else."""
    try:
        value = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError, too
        raise FolderError(f"{path} is damaged: {error or 'nested too deeply'}") from None
    if wrong := _wrong(value, EXPECTED.get(path.name, object), ""):
        raise FolderError(f"{path} is damaged: {wrong}")
    return value


def _wrong(value: Any, expected: Any, place: str) -> str | None:
    """What is wrong with a value, in words; None: nothing."""
    if isinstance(expected, tuple) and any(not isinstance(one, type) for one in expected):
        found = [_wrong(value, one, place) for one in expected]
        return None if None in found else found[-1]
    if isinstance(expected, Mapping):
        if not isinstance(value, dict):
            return f"{place or 'it'} is {_kind(value)}, expected an object"
        for name, one in expected.items():
            entry = value.get(name.removesuffix(OPTIONAL))
            if entry is None and name.endswith(OPTIONAL):
                continue
            if wrong := _wrong(entry, one, f"{place}.{name}".strip(".").removesuffix(OPTIONAL)):
                return wrong
        return None
    if isinstance(expected, list):
        if not isinstance(value, list):
            return f"{place} is {_kind(value)}, expected a list"
        return next((wrong for one in value if (wrong := _wrong(one, expected[0], f"an entry of {place}"))), None)
    is_right = isinstance(value, expected) and not (isinstance(value, bool) and expected is not object)
    return None if is_right else f"{place} is {_kind(value)}"


def _kind(value: Any) -> str:
    """A JSON value's type, in JSON's words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "missing" if value is None else names[type(value)]
