"""What the page asks of the server. Plain JSON; pages of samples, never the whole data set."""

import shlex
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from undermargin.errors import InputError, UndermarginError
from undermargin.review.cards import Cards, standing
from undermargin.review.progress import LAST, progress
from undermargin.review.selection import Filters, Indices, Standing, class_names, class_number, select
from undermargin.scans.decisions import Action, Change, Decision, Decisions, Entry
from undermargin.scans.folder import Folder
from undermargin.storage.json import to_json
from undermargin.verdicts.record import NAMES, Verdicts

PAGE = files("undermargin.review") / "page"
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SIDES = (240, 1000)  # pixels: in the grid, alone
MOST_AT_ONCE = 200  # samples a page
MOST_CHANGES = 20_000  # decisions in one request


class ChangeBody(BaseModel):
    """A decision as the page sends it; without an action, the last one is taken back."""

    index: int
    action: Action | None
    label: str | None = None
    note: str = Field("", max_length=500)
    seen: int


class DecisionsBody(BaseModel):
    """Decisions that belong together."""

    changes: list[ChangeBody] = Field(max_length=MOST_CHANGES)


class Json(Response):
    """JSON of our own making, which knows NumPy and nan."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Its bytes."""
        return to_json(content, indent=None).encode()


def make_app(folder: Folder, verdicts: Verdicts, cards: Cards, decisions: Decisions) -> FastAPI:
    """The app of one scan."""
    app = FastAPI(openapi_url=None, default_response_class=Json)

    @app.exception_handler(UndermarginError)
    def expected(_: Request, error: UndermarginError) -> Response:
        return Json({"error": str(error)}, status_code=400)

    _add_page(app)
    _add_scan(app, folder, verdicts, cards)
    _add_samples(app, verdicts, cards, decisions)
    _add_decisions(app, verdicts, decisions)
    return app


def _add_page(app: FastAPI) -> None:
    names = {file.name for file in PAGE.iterdir()}

    @app.get("/")
    def index() -> Response:
        return _file("index.html")

    @app.get("/page/{name}")
    def file(name: str) -> Response:
        return _file(name) if name in names else Response(status_code=404)


def _file(name: str) -> Response:
    return Response((PAGE / name).read_bytes(), media_type=TYPES[name.rpartition(".")[2]])


def _add_scan(app: FastAPI, folder: Folder, verdicts: Verdicts, cards: Cards) -> None:
    @app.get("/api/scan")
    def scan() -> Any:
        summary = verdicts.summary()
        return {
            "name": folder.path.resolve().name,
            "path": shlex.quote(str(folder.path)),
            "kind": cards.originals.kind,
            "can_show": cards.originals.is_there,
            "label_column": cards.originals.label_column,
            "classes": class_names(verdicts),
            "num_samples": len(verdicts),
            "verdicts": {name: summary[f"num_{name}"] for name in NAMES},
            "num_flagged_labelled": _counts(verdicts, verdicts.labels),
            "num_flagged_suggested": _counts(verdicts, verdicts.suggested_labels),
        }


def _counts(verdicts: Verdicts, labels: Indices | None) -> list[int]:
    """Flagged samples a class."""
    names = class_names(verdicts)
    if labels is None:
        return [0] * len(names)
    flagged = labels[verdicts.is_flagged]
    return [int((flagged == number).sum()) for number in range(len(names))]


def _add_samples(app: FastAPI, verdicts: Verdicts, cards: Cards, decisions: Decisions) -> None:
    @lru_cache(maxsize=32)
    def selected(filters: Filters, as_of: int) -> Indices:
        return select(verdicts, filters, decisions.entries(as_of))

    @app.get("/api/samples")
    def samples(
        verdict: Literal["flagged", "kept", "unjudged"] | None = None,
        label: str | None = None,
        suggested: str | None = None,
        standing: Standing = "any",
        order: Literal["suspicion", "random"] = "suspicion",
        as_of: int | None = None,  # a line of the log: what is decided later does not move the samples about
        start: Annotated[int, Query(ge=0)] = 0,
        count: Annotated[int, Query(ge=0, le=MOST_AT_ONCE)] = 60,
    ) -> Any:
        line = decisions.number if as_of is None else as_of
        indices = selected(Filters(verdict, label, suggested, standing, order), line)
        shown = indices[start : start + count].tolist()
        return {"as_of": line, "num_samples": len(indices), "samples": cards.short(shown, decisions.entries())}

    @app.get("/api/samples/{index}")
    def sample(index: int) -> Any:
        return cards.whole(_checked(index, verdicts)) | standing(decisions.entries().get(index, Entry()))

    @app.get("/api/pictures/{index}/{side}")
    def picture(index: int, side: int) -> Response:
        if side not in SIDES:
            raise InputError(f"pictures have a side of {' or '.join(map(str, SIDES))} pixels, not {side}")
        data = cards.originals.picture(_checked(index, verdicts), side)
        return Response(data, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=3600"})


def _add_decisions(app: FastAPI, verdicts: Verdicts, decisions: Decisions) -> None:
    @app.get("/api/progress")
    def current() -> Any:
        return progress(verdicts, decisions.latest(), decisions.times(LAST))

    @app.post("/api/decisions")
    def decide(body: DecisionsBody) -> Any:
        outcome = decisions.decide([_change(one, verdicts) for one in body.changes])
        return {
            "saved": {index: standing(entry) for index, entry in outcome.saved.items()},
            "conflicts": {index: standing(entry) for index, entry in outcome.conflicts.items()},
            "progress": current(),
        }


def _change(body: ChangeBody, verdicts: Verdicts) -> Change:
    index = _checked(body.index, verdicts)
    if body.action is None:
        return Change(index, None, body.seen)
    if (body.action == "relabel") != (body.label is not None):
        raise InputError(f"to {body.action} with the label {body.label!r} means nothing; relabel, and only it, has one")
    if body.label is not None:
        class_number(verdicts, body.label)
    decision = Decision(body.action, body.label, body.note)
    label = None if verdicts.labels is None else verdicts.name(int(verdicts.labels[index]))
    return Change(index, decision if label is None else decision.about(label), body.seen)


def _checked(index: int, verdicts: Verdicts) -> int:
    if not 0 <= index < len(verdicts):
        raise InputError(f"there is no sample {index}; there are {len(verdicts)}")
    return index
