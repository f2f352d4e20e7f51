"""Verdicts for people: an HTML summary for notebooks, and what one sample looks like."""

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from undermargin.errors import InputError

if TYPE_CHECKING:
    from undermargin.verdicts.record import Verdicts

NUM_BINS = 48
WIDTH, HEIGHT = 480, 96  # pixels of the histogram
NUM_SHOWN = 10
EXCERPT = 120  # characters of a text
THUMBNAIL = 64  # pixels
KEPT, FLAGGED = "#9aa5b1", "#c2410c"
CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:middle"


def headline(verdicts: "Verdicts") -> str:
    """The most important facts in one or two sentences."""
    number, total = len(verdicts.flagged), len(verdicts)
    text = f"{number:,} of {total:,} labels look wrong ({number / max(total, 1):.1%})"
    found = verdicts.summary()["estimated_mislabeled"]
    if found is not None:
        text = f"About {found['number']:,} labels are wrong (90 %: {found['low']:,} to {found['high']:,}). {text}"
    return text + "."


def to_html(verdicts: "Verdicts", source: Any = None) -> str:
    """Headline, histogram of the scores and the most suspicious samples, as one HTML fragment."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in verdicts.about.get("notes", []))
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:13px;max-width:720px">'
        f'<p style="font-size:15px;margin:0 0 8px"><b>{escape(headline(verdicts))}</b></p>'
        f"{_histogram(verdicts)}{_table(verdicts, source)}"
        f"{f'<ul style=margin-top:8px>{notes}</ul>' if notes else ''}</div>"
    )


def _histogram(verdicts: "Verdicts") -> str:
    """Scores of kept and flagged samples, stacked, as SVG."""
    scores = np.asarray(verdicts.scores, np.float64)
    known = np.isfinite(scores)
    if not known.any():
        return ""
    low, high = np.quantile(scores[known], [0.002, 0.998])
    edges = np.linspace(low, max(high, low + 1e-6), NUM_BINS + 1)
    clipped = np.clip(scores, edges[0], edges[-1])
    flagged, kept = (
        np.histogram(clipped[known & chosen], edges)[0] for chosen in (verdicts.is_flagged, ~verdicts.is_flagged)
    )
    scale = HEIGHT / max(int((flagged + kept).max()), 1)
    step = WIDTH / NUM_BINS
    bars = []
    for place, (first, second) in enumerate(zip(flagged * scale, kept * scale, strict=True)):
        for color, size, base in ((FLAGGED, first, 0.0), (KEPT, second, first)):
            if size > 0:
                top = HEIGHT - base - size
                bars.append(
                    f'<rect x="{place * step:.1f}" y="{top:.1f}" width="{step - 1:.1f}" height="{size:.1f}" '
                    f'fill="{color}"/>'
                )
    legend = f'<span style="color:{FLAGGED}">flagged</span> and <span style="color:{KEPT}">kept</span>'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Histogram of scores">{"".join(bars)}</svg>'
        f'<div style="color:#52606d">score ({escape(str(verdicts.about.get("score", "aum")))}), low = suspicious: '
        f"{legend} samples</div>"
    )


def _table(verdicts: "Verdicts", source: Any) -> str:
    rows = verdicts.flagged[:NUM_SHOWN]
    if not len(rows):
        return ""
    has_odds, has_looks = verdicts.probabilities is not None, source is not None
    heads = ["sample", "label", "suggested", *(["P(mislabeled)"] * has_odds), *(["looks like"] * has_looks)]
    lines = ["".join(f'<th style="{CELL}">{head}</th>' for head in heads)]
    for row in rows.tolist():
        cells = [escape(verdicts.id(row)), escape(verdicts.label(row) or ""), escape(verdicts.suggestion(row) or "")]
        if verdicts.probabilities is not None:
            cells.append(f"{verdicts.probabilities[row]:.2f}")
        if source is not None:
            cells.append(looks(source, row))
        lines.append("".join(f'<td style="{CELL}">{cell}</td>' for cell in cells))
    return (
        "<table style='border-collapse:collapse;margin-top:8px'>"
        + "".join(f"<tr>{one}</tr>" for one in lines)
        + "</table>"
    )


def looks(source: Any, row: int) -> str:
    """One sample as HTML: an excerpt of a text, a thumbnail of an image, or the values of a row."""
    value = source.iloc[row] if hasattr(source, "iloc") else source[row]
    if isinstance(value, tuple) and len(value) == 2 and not isinstance(source, list):
        value = value[0]  # (input, label), as data sets have it
    if isinstance(value, str):
        return escape(value if len(value) <= EXCERPT else value[: EXCERPT - 1] + "…")
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return escape(", ".join(f"{name}: {one}" for name, one in list(value.items())[:6]))
    pixels = np.asarray(value)
    return _thumbnail(pixels) if pixels.ndim in (2, 3) else escape(np.array2string(pixels[:6], precision=3))


def _thumbnail(pixels: npt.NDArray[Any]) -> str:
    from PIL import Image

    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        pixels = ((pixels - low) * (255 / max(high - low, 1e-9))).astype(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    image = Image.fromarray(pixels).convert("RGB").resize((THUMBNAIL, THUMBNAIL), Image.Resampling.NEAREST)
    data = io.BytesIO()
    image.save(data, "PNG")
    encoded = base64.b64encode(data.getvalue()).decode()
    return f'<img src="data:image/png;base64,{encoded}" width="{THUMBNAIL}" height="{THUMBNAIL}" alt="">'


def plot(verdicts: "Verdicts", axes: Any = None) -> Any:
    """Draw the scores of flagged and kept samples with matplotlib; returns the axes."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise InputError('plot() needs matplotlib: pip install "undermargin[paper]"') from None
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 2.5), layout="constrained")
    scores = np.asarray(verdicts.scores, np.float64)
    parts = [scores[verdicts.is_flagged & np.isfinite(scores)], scores[~verdicts.is_flagged & np.isfinite(scores)]]
    axes.hist(parts, bins=NUM_BINS, stacked=True, color=[FLAGGED, KEPT], label=["flagged", "kept"])
    axes.set_xlabel(f"score ({verdicts.about.get('score', 'aum')}), low = suspicious")
    axes.set_ylabel("samples")
    axes.legend(frameon=False)
    return axes
