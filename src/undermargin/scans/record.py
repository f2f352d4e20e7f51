"""`Scan`: everything that can be done with the samples of a data set once they have scores."""

import html
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undermargin.cutoffs import choose
from undermargin.errors import FolderError, UndermarginError
from undermargin.scans.decisions import Decision
from undermargin.scans.folder import Folder
from undermargin.scans.judge import judge, own_cutoff
from undermargin.sources.samples import Reading
from undermargin.tracking.run import Run
from undermargin.verdicts.record import Verdicts

if TYPE_CHECKING:
    from undermargin.scans.cleaning import Flagged
    from undermargin.training.plan import MakeModel

NUM_SHOWN = 10  # samples in a notebook


class Scan:
    """A finished scan and its folder. `scan()` returns one, `Scan.open` opens one, `Scan.of` makes one of your runs.

    Opening, identifying, reporting, reviewing, cleaning and exporting need no torch.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    @classmethod
    def open(cls, path: str | Path) -> "Scan":
        """The scan in this folder."""
        return cls(Folder.open(path))

    @classmethod
    def of(
        cls,
        runs: Run | Sequence[Run],
        source: Any = None,
        *,
        out: str | Path,
        cutoff: str | float = "paper",
        reading: Reading | None = None,
    ) -> "Scan":
        """A scan of runs of your own training, so that it can be reported, reviewed, cleaned, exported, retrained.

        `source` is the data set the runs were trained on, in the same order: a path or data in memory, as for `scan`.
        Labels, ids and class names that the runs lack are taken from it. Without it only numbers can be shown, and
        there is nothing to clean or to retrain on. `reading` names columns where they are not plain.
        """
        from undermargin.scans.own_runs import make

        return cls(make([runs] if isinstance(runs, Run) else list(runs), source, Path(out), cutoff, reading))

    @property
    def path(self) -> Path:
        """The scan's folder."""
        return self._folder.path

    @property
    def verdicts(self) -> Verdicts:
        """The verdict on every sample, as last identified."""
        return self._folder.verdicts()

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, cutoff, classes, confusions and how the scores came about: summary.json."""
        summary: dict[str, Any] = self._folder.read_json("summary.json")
        return summary

    @property
    def decisions(self) -> dict[int, Decision]:
        """What people decided, by sample index: in this scan's review, and in the earlier scan it was told to trust."""
        return self._folder.decided()

    @property
    def runs(self) -> list[Run]:
        """What each fold's training left: scores and threshold samples."""
        return self._folder.runs()

    def identify(
        self,
        cutoff: str | float | None = None,
        *,
        percentile: float | None = None,
        precision: float | None = None,
        budget: int | None = None,
    ) -> Verdicts:
        """Judge every sample again, without training; the folder then holds these verdicts.

        Without a cutoff, the scan's own is used. `cutoff="paper"` is the paper's; `percentile` replaces its 99. With a
        `precision` as many samples are flagged as keep that expected share of wrong labels, with a `budget` this many.
        """
        folder = self._folder
        with folder.locked():
            name, share = own_cutoff(folder) if cutoff is None else (cutoff, None)
            if percentile is not None:
                share = percentile
                if cutoff is None and choose(name).share is None:
                    name = "paper"  # a percentile alone asks for the rule that has one
            if cutoff is None and (precision is not None or budget is not None):
                name, share = "probability", None  # only P(mislabeled) knows how many to flag
            trusted = folder.trusted()
            labels = folder.verdicts().labels if trusted else None
            verdicts = judge(
                folder.runs(),
                name,
                percentile=share,
                precision=precision,
                budget=budget,
                trusted=trusted,
                labels=labels,
            )
            folder.save_verdicts(verdicts)
            folder.write_manifest()
        return verdicts

    def report(
        self,
        path: str | Path | None = None,
        *,
        by: Sequence[str] = (),
        num_samples: int = 200,
        has_thumbnails: bool = True,
    ) -> Path:
        """Write one self-contained HTML page, to report.html in the scan's folder by default, and return its path.

        `by` names columns of the data set whose values are compared. Without thumbnails the page holds no picture,
        text or row of the data.
        """
        written: Path = _view("report").report(
            self._folder, path, by=by, num_samples=num_samples, has_thumbnails=has_thumbnails
        )
        return written

    def describe(
        self, *, by: Sequence[str] = (), num_samples: int = 200, has_thumbnails: bool = True
    ) -> dict[str, Any]:
        """What the report shows, as plain data ready for JSON."""
        data: dict[str, Any] = _view("report").describe(
            self._folder, by=by, num_samples=num_samples, has_thumbnails=has_thumbnails
        )
        return data

    def review(
        self,
        port: int | None = None,
        *,
        host: str = "127.0.0.1",
        data: str | Path | None = None,
        confirm: Callable[[Path], bool] = lambda path: False,  # noqa: ARG005
        on_start: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Serve the page where people decide, until it is stopped (Ctrl-C), and return how far the review has come.

        `data` is where the data are now, if they were moved. `confirm(path)` is asked before data are shown that were
        not scanned on this machine. `on_start` gets the page's address; by default it is opened in a browser.
        """
        try:
            serve = _view("review.server").serve
        except ModuleNotFoundError as error:
            raise UndermarginError(f"the page needs {error.name}: pip install 'undermargin[review]'") from None
        found: dict[str, Any] = serve(
            self._folder,
            host=host,
            port=port,
            data=None if data is None else Path(data),
            confirm=confirm,
            on_start=on_start or _open_browser,
        )
        return found

    def import_decisions(self, path: str | Path) -> dict[str, int]:
        """Take in decisions from a CSV file, all rows or none, and return how many."""
        return self._exchange(Path(path), None)

    def export_decisions(self, path: str | Path) -> dict[str, int]:
        """Write the decisions of this scan's review to a CSV file, and return how many."""
        return self._exchange(None, Path(path))

    def _exchange(self, source: Path | None, target: Path | None) -> dict[str, int]:
        found: dict[str, int] = _view("review.sheet").exchange(self._folder, source, target)
        return found

    def clean(
        self,
        to: str | Path | None = None,
        *,
        flagged: "Flagged" = "drop",
        only_decided: bool = False,
        indices: str | Path | None = None,
        is_linked: bool = False,
        data: str | Path | None = None,
    ) -> dict[str, Any]:
        """Write the data set without dropped samples and with relabels applied, and return what changed.

        Decisions come first; `flagged` says what happens to flagged samples without one: drop, relabel or keep.
        `only_decided` keeps them: nothing changes that nobody has looked at. `indices` is a CSV file for index, id and
        label of what stays. With neither path nothing is written. `data` is where the data are now, if they were moved.
        """
        from undermargin.scans.cleaning import Cleaning

        cleaning = Cleaning.of(self.path, flagged="keep" if only_decided else flagged, data=data)
        written: list[Path] = []
        if to is not None:
            written += [Path(to), cleaning.write(to, is_linked=is_linked)]
        if indices is not None:
            cleaning.write_indices(indices)
            written.append(Path(indices))
        counts = _by_origin(cleaning.changes.rows(), self.decisions)
        return cleaning.summary() | counts | {"written": [str(path) for path in written]}

    def export(
        self,
        format: str,  # noqa: A002 - what users call it
        path: str | Path,
        *,
        only_flagged: bool = False,
        overwrite: bool = False,
    ) -> Path:
        """Write the answers in the format of another tool: a row of `export.FORMATS`; returns the path."""
        written: Path = _view("export").export(
            self._folder, format, path, only_flagged=only_flagged, overwrite=overwrite
        )
        return written

    def retrain(
        self,
        test: str | Path | None = None,
        *,
        test_where: str | None = None,
        holdout: float | None = None,
        model: "str | MakeModel | None" = None,
        seeds: int = 3,
        epochs: int | None = None,
        on_training: Callable[[str, int], None] = lambda variant, seed: None,  # noqa: ARG005
    ) -> dict[str, Any]:
        """Train before and after cleaning, with the same number of iterations, and return the test errors.

        `test` is a data set of the same kind; or `holdout` is the share of the scanned data to set aside.
        """
        from undermargin.scans.evaluate import evaluate

        return evaluate(
            self.path,
            test=test,
            test_where=test_where,
            holdout=holdout,
            model=model,
            seeds=seeds,
            epochs=epochs,
            on_training=on_training,
        )

    def __repr__(self) -> str:
        return f"Scan({str(self.path)!r}: {self._headline()})"

    def _headline(self) -> str:
        try:
            return str(self.verdicts)
        except FolderError as error:
            return str(error)

    def _repr_html_(self) -> str:
        """What a notebook shows: the headline, the cutoff, and the most suspicious samples."""
        name = html.escape(str(self.path))
        try:
            verdicts, summary = self.verdicts, self.summary
        except FolderError as error:
            return f"<p><b>{name}</b>: {html.escape(str(error))}</p>"
        cutoff = summary["cutoff"]
        columns = ("id", "label", "suggested_label", "score")
        rows = verdicts.to_arrow().slice(0, min(NUM_SHOWN, summary["num_flagged"])).select(columns).to_pylist()
        head = "".join(f"<th>{column.replace('_', ' ')}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(row[column])}</td>' for column in columns)}</tr>" for row in rows)
        return (
            f"<p><b>{html.escape(str(verdicts))}</b><br>cutoff {html.escape(cutoff['name'])}: "
            f"{html.escape(cutoff['description'])}<br>{name}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else html.escape("" if value is None else str(value))


def _by_origin(changes: Sequence[Mapping[str, Any]], decided: Mapping[int, Decision]) -> dict[str, int]:
    """How many samples are dropped and relabeled by decisions, and how many by verdicts alone."""
    counts = {f"num_{action}_by_{by}": 0 for action in ("dropped", "relabeled") for by in ("decision", "verdict")}
    for change in changes:
        action = "dropped" if change["action"] == "drop" else "relabeled"
        counts[f"num_{action}_by_{'decision' if change['index'] in decided else 'verdict'}"] += 1
    return counts


def _view(name: str) -> Any:
    """The module of a view: report, review or export.

    Views read scans, so they are built on this module; it knows them by name only and loads them when they are used.
    """
    return import_module(f"undermargin.{name}")


def _open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
