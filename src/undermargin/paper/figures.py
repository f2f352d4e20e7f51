"""The paper's figures, drawn from stored results."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from undermargin.errors import InputError
from undermargin.sources.official.record import OfficialSet
from undermargin.sources.official.record import decoded as decoded_files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GRAY, GREEN, RED = "#3b6fb6", "#e8833a", "#777777", "#4a9d5b", "#c8443c"
THUMBNAIL = 96  # pixels
NAME_WIDTH = 16  # letters below a thumbnail
LETTERS = 13  # of a title per inch
IDENTIFIERS = {"aum": "AUM", "aum, auto": "AUM, cutoff auto", "bmm": "BMM", "gmm": "GMM", "incv": "INCV"}
COLORS = (BLUE, RED, ORANGE, GREEN, "#8661a8", GRAY)


def check_library() -> None:
    """Raise if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib: pip install 'undermargin[paper]'")


def new(columns: int, title: str, *, width: float = 4.2, height: float = 3.0) -> "tuple[Figure, list[Axes]]":
    """A row of axes with a title. Made without pyplot, which would keep every figure of a long run in memory."""
    check_library()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(np.atleast_1d(figure.subplots(1, columns)))
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(_wrapped(title, width * columns), fontsize=10)
    return figure, axes


def _wrapped(title: str, inches: float) -> str:
    """The title, broken into lines of the figure's width."""
    return "\n".join(wrap(title, int(inches * LETTERS)))


def _legend(figure: "Figure", axis: "Axes") -> None:
    """One legend for all axes, below them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure as SVG, without a date and random names in it: the same results make the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "undermargin"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def precision_recall(
    lines: Mapping[str, Sequence[tuple[float, list[dict[str, float]]]]], rates: Sequence[float], title: str
) -> "Figure":
    """Precision and recall by noise rate, one line per identifier: mean over seeds, with bars for the range."""
    figure, axes = new(2, title)
    for axis, measure in zip(axes, ("precision", "recall"), strict=True):
        for color, (name, points) in zip(COLORS, lines.items(), strict=False):
            # an identifier that flags nothing has no precision
            known = [[found[measure] for found in founds if found[measure] is not None] for _, founds in points]
            values = [np.array(some or [np.nan]) for some in known]
            means = np.array([value.mean() for value in values])
            spread = np.abs([[m - v.min() for m, v in zip(means, values, strict=True)]] * 2)
            spread[1] = [v.max() - m for m, v in zip(means, values, strict=True)]
            known_rates = [100 * rate for rate, _ in points]
            label = IDENTIFIERS.get(name, name)
            axis.errorbar(
                known_rates, 100 * means, 100 * spread, color=color, marker="o", markersize=4, capsize=2, label=label
            )
        ticks = [100 * rate for rate in rates]
        axis.set(xlabel="noise rate in %", ylabel=f"{measure} in %", ylim=(0, 103), xticks=ticks)
        axis.set(xlim=(min(ticks) - 5, max(ticks) + 5))
    _legend(figure, axes[0])
    return figure


def histograms(found: Mapping[str, Mapping[str, Any]], title: str) -> "Figure":
    """AUM of clean and mislabeled samples, or of all samples if that is not known; threshold samples; the cutoff."""
    figure, axes = new(len(found), title, width=4.2 if len(found) < 3 else 3.2)
    for axis, (name, numbers) in zip(axes, found.items(), strict=True):
        counts = numbers["histogram"]
        edges = np.array(counts["edges"])
        is_known = sum(counts["mislabeled"]) > 0
        axis.stairs(counts["clean"], edges, fill=True, alpha=0.6, color=BLUE, label="clean" if is_known else "samples")
        if is_known:
            axis.stairs(counts["mislabeled"], edges, fill=True, alpha=0.6, color=ORANGE, label="mislabeled")
        axis.stairs(counts["threshold"], edges, color=GRAY, linestyle="--", label="threshold samples")
        axis.axvline(numbers["cutoffs"][0], color="black", linewidth=1, label="cutoff")
        axis.set_title(name, fontsize=9)
        axis.set(xlabel="AUM", ylabel="samples")
    _legend(figure, axes[0])
    return figure


def logits(panels: Mapping[str, np.ndarray], label: int, title: str) -> "Figure":
    """The logits of all classes by epoch (epochs, classes), one panel per group, with the area under the margin."""
    figure, axes = new(len(panels), title, width=3.4)
    for axis, (name, values) in zip(axes, panels.items(), strict=True):
        epochs = np.arange(1, len(values) + 1)
        others = np.delete(values, label, axis=1)
        axis.plot(epochs, others, color="#cccccc", linewidth=0.8)
        axis.plot(epochs, others.max(1), color=RED, linewidth=1.2, label="largest other")
        axis.plot(epochs, values[:, label], color=BLUE, linewidth=1.6, label="assigned")
        above = values[:, label] >= others.max(1)
        for where, color in ((above, GREEN), (~above, RED)):
            axis.fill_between(epochs, values[:, label], others.max(1), where=where, color=color, alpha=0.2)
        axis.set_title(name, fontsize=9)
        axis.set(xlabel="epoch")
    axes[0].set(ylabel="logit")
    _legend(figure, axes[0])
    return figure


def margins(lines: Mapping[str, np.ndarray], title: str) -> "Figure":
    """Margins (epochs,) on the left, their running means on the right."""
    figure, axes = new(2, title)
    for color, (name, values) in zip((BLUE, ORANGE), lines.items(), strict=True):
        epochs = np.arange(1, len(values) + 1)
        axes[0].plot(epochs, values, color=color, label=name)
        axes[1].plot(epochs, np.cumsum(values) / epochs, color=color, label=name)
    axes[0].set(xlabel="epoch", ylabel="margin")
    axes[1].set(xlabel="epoch", ylabel="AUM so far")
    _legend(figure, axes[0])
    return figure


def curves(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    across: str,
    up: str,
    marked: float | None = None,
) -> "Figure":
    """Lines through points in percent; a dotted line marks what the method itself removes."""
    figure, (axis,) = new(1, title, width=5)
    for color, (name, points) in zip((RED, GRAY), lines.items(), strict=False):
        if points:
            axis.plot(*zip(*points, strict=True), color=color, marker="o", markersize=4, label=name)
    if marked is not None:
        axis.axvline(marked, color="black", linestyle=":", linewidth=1, label="what AUM removes")
    axis.tick_params(labelsize=8)
    axis.set(xlabel=across, ylabel=up, xticks=sorted({x for points in lines.values() for x, _ in points}))
    _legend(figure, axis)
    return figure


def matrices(panels: Mapping[str, np.ndarray], names: Sequence[str], title: str) -> "Figure":
    """Matrices of correlations (names, names), one panel each, with the numbers in the squares."""
    figure, axes = new(len(panels), title, width=2.9, height=3.2)
    for axis, (panel, values) in zip(axes, panels.items(), strict=True):
        axis.imshow(values, cmap="Blues", vmin=0, vmax=1)
        for row, column in np.ndindex(*values.shape):
            color = "white" if values[row, column] > 0.6 else "black"
            text = f"{values[row, column]:.2f}"
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
        axis.set_title(panel, fontsize=9)
        axis.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
        axis.set_yticks(range(len(names)), names if axis is axes[0] else [""] * len(names), fontsize=7)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    return figure


def grid(images: Sequence[np.ndarray], names: Sequence[str], title: str, columns: int = 8) -> "Figure":
    """A grid of images with their labels below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(images) // columns)
    figure = Figure(figsize=(1.1 * columns, 1.3 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axis in figure.subplots(rows, columns, squeeze=False).flat:
        axis.axis("off")
    for axis, image, name in zip(figure.axes, images, names, strict=False):
        axis.imshow(image.squeeze(), cmap="gray" if image.shape[-1] == 1 else None, interpolation="nearest")
        below = "\n".join(wrap(name, NAME_WIDTH, max_lines=2, placeholder="…"))
        axis.text(0.5, -0.04, below, fontsize=7, ha="center", va="top", transform=axis.transAxes)
    figure.suptitle(_wrapped(title, 1.1 * columns), fontsize=10)
    return figure


def decoded(images: OfficialSet) -> list[np.ndarray]:
    """The images as arrays (height, width, channels)."""
    return list(images.images if isinstance(images.images, np.ndarray) else decoded_files(images.images, THUMBNAIL))
