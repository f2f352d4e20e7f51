"""Label Studio: a list of tasks, each with the suggested label as a prediction, and the labeling interface beside it.

Images that are files are named as Label Studio serves local files (/data/local-files/?d=...), with the data set's
folder as its document root; other images are embedded in the file.
"""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from undermargin.export.answers import Answers
from undermargin.export.tables import pieces
from undermargin.sources.base import Source
from undermargin.storage.files import replacing
from undermargin.storage.json import to_json

SIDE = 512  # pixels
TOLD = ("index", "id", "label", "score", "verdict")


def write_label_studio(answers: Answers, path: Path) -> None:
    """The tasks, most suspicious first; the interface goes to the same name with the suffix .xml."""
    if answers.source.is_there:
        answers.source.check(is_thorough=True)
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        separator = "[\n"
        for part in pieces(answers):
            for row in part.to_pylist():
                file.write(separator + to_json(task(row, answers.source), indent=None))
                separator = ",\n"
        file.write("[]\n" if separator == "[\n" else "\n]\n")
    with replacing(path.with_suffix(".xml")) as partial:
        partial.write_text(interface(answers.class_names, answers.source), encoding="utf-8")


def interface(class_names: list[str], source: Source) -> str:
    """The interface that a project needs to show the tasks: one sample, one choice of label."""
    tag = '<Image name="sample" value="$image"/>' if _shows_images(source) else '<Text name="sample" value="$text"/>'
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    return (
        f'<View>\n  {tag}\n  <Header value="Labeled $label"/>\n'
        f'  <Choices name="label" toName="sample" choice="single" showInLine="true">\n{choices}\n  </Choices>\n'
        "</View>\n"
    )


def task(row: dict[str, Any], source: Source) -> dict[str, Any]:
    """One sample: what is shown, the suggested label, and the decision if there is one."""
    data = {name: row[name] for name in TOLD}
    data["image" if _shows_images(source) else "text"] = _content(row, source)
    made: dict[str, Any] = {"data": data, "predictions": []}
    suggested = row["suggested_label"]
    if suggested is not None:
        prediction = {"model_version": "undermargin", "result": [_choice(suggested)]}
        if row.get("suggestion_confidence") is not None:
            prediction["score"] = row["suggestion_confidence"]
        made["predictions"].append(prediction)
    decided = {"keep": row["label"], "relabel": suggested}.get(row.get("decision") or "")
    if decided is not None:
        made["annotations"] = [{"result": [_choice(decided)]}]
    return made


def _choice(label: str) -> dict[str, Any]:
    return {"id": "label", "from_name": "label", "to_name": "sample", "type": "choices", "value": {"choices": [label]}}


def _shows_images(source: Source) -> bool:
    return source.kind == "images" and source.is_there


def _content(row: dict[str, Any], source: Source) -> str:
    index = row["index"]
    if not source.is_there or source.kind == "embeddings":
        return str(row["id"])
    if source.kind == "text":
        return source.text(index)
    if source.kind == "table":
        return "\n".join(f"{name}: {value}" for name, value in source.row(index).items())
    if source.has_files:
        return "/data/local-files/?d=" + quote(source.ids[index])
    return "data:image/jpeg;base64," + base64.b64encode(source.picture(index, SIDE)).decode()
