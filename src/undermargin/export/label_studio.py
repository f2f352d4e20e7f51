"""Label Studio: a list of tasks, each with what we suggest as a prediction, and the labeling interface beside it.

Images in class folders are named as Label Studio serves local files (/data/local-files/?d=...), with the data set's
folder as its document root; other images are part of the file.
"""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from undermargin.export.answers import Answers
from undermargin.export.tables import pieces
from undermargin.sources.originals import CLASS_FOLDERS, Originals
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json

SIDE = 512  # pixels
TOLD = ("index", "id", "label", "score", "verdict")


def write_label_studio(answers: Answers, path: Path) -> None:
    """The tasks, most suspicious first; the interface goes to the same name with the ending .xml."""
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        separator = "[\n"
        for part in pieces(answers):
            for row in part.to_pylist():
                file.write(separator + to_json(task(row, answers.originals), indent=None))
                separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")
    with replacing(path.with_suffix(".xml")) as partial:
        partial.write_text(interface(answers.class_names, answers.originals), encoding="utf-8")


def interface(class_names: list[str], originals: Originals) -> str:
    """What a project needs to show the tasks: one sample, one choice of label."""
    tag = '<Image name="sample" value="$image"/>' if _shows_images(originals) else '<Text name="sample" value="$text"/>'
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  {tag}\n  <Header value="Labelled $label"/>\n'
        f'  <Choices name="label" toName="sample" choice="single" showInLine="true">\n{choices}\n  </Choices>\n'
        "</View>\n"
    )


def task(row: dict[str, Any], originals: Originals) -> dict[str, Any]:
    """One sample: what is shown, what we suggest, and what somebody decided."""
    data = {name: row[name] for name in TOLD}
    data["image" if _shows_images(originals) else "text"] = _content(row, originals)
    made: dict[str, Any] = {"data": data, "predictions": []}
    suggested = row["suggested_label"]
    if suggested is not None:
        prediction = {"model_version": "undermargin", "result": [_choice(suggested)]}
        if row.get("suggestion_confidence") is not None:
            prediction["score"] = row["suggestion_confidence"]
        made["predictions"].append(prediction)
    if row.get("decision") in ("keep", "relabel"):
        made["annotations"] = [{"result": [_choice(suggested)]}]
    return made


def _choice(label: str) -> dict[str, Any]:
    return {"id": "label", "from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": [label]}}


def _shows_images(originals: Originals) -> bool:
    return originals.kind == "images" and originals.is_there


def _content(row: dict[str, Any], originals: Originals) -> str:
    index = row["index"]
    if not originals.is_there or originals.kind == "embeddings":
        return str(row["id"])
    if originals.kind == "text":
        return originals.text(index)
    if originals.kind == "table":
        return "\n".join(f"{name}: {value}" for name, value in originals.row(index).items())
    if originals.format == CLASS_FOLDERS:
        return "/data/local-files/?d=" + quote(originals.ids[index])
    return "data:image/jpeg;base64," + base64.b64encode(originals.picture(index, SIDE)).decode()
