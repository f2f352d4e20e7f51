"""The tables of measurements in the documentation, from the result files in bench/."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent.parent / "bench"


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The text with each table between its markers, `<!-- name -->` and `<!-- /name -->`."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
        if start not in text or end not in text:
            raise SystemExit(f"the page has no markers <!-- {name} --> and <!-- /{name} -->")
        before, _, rest = text.partition(start)
        text = before + start + "\n" + table + "\n" + end + rest.partition(end)[2]
    return text


def readme_tables() -> dict[str, str]:
    """The tables of the README: the latest stored result of each benchmark."""
    stored = {name: _latest(name) for name in README}
    return {name: README[name](line) for name, line in stored.items() if line}


def quality() -> str:
    """docs/quality.md: the stored results of bench/quality, averaged over seeds."""
    cells = [json.loads(line) for line in (BENCH / "quality.jsonl").read_text().splitlines()]
    names = ("average_precision", "mcc", "precision", "recall", "f1", "flagged_share", "seconds")
    titles = ("AP", "MCC", "precision", "recall", "F1", "flagged", "seconds")
    lines = [QUALITY, f"| data | flipped | seeds | {' | '.join(titles)} |", f"|{'---|' * (len(titles) + 3)}"]
    for data, rate in dict.fromkeys((cell["data"], cell["rate"]) for cell in cells):
        same = [cell for cell in cells if (cell["data"], cell["rate"]) == (data, rate)]
        values = []
        for name in names:
            form = "{:.0f}" if name == "seconds" else "{:.3f}"
            means = [sum(cell[tool][name] for cell in same) / len(same) for tool in ("undermargin", "cleanlab")]
            values.append(" / ".join(form.format(mean) for mean in means))
        lines.append(f"| {data} | {rate:.0%} | {len(same)} | {' | '.join(values)} |")
    return "\n".join(lines) + f"\n\nCommits: {_commits(cells)}.\n"


QUALITY = """# Quality of the verdicts

This page is generated from `bench/quality.jsonl` (`make docs`). The data are real; a share of the labels was flipped
uniformly at random. `undermargin scan` was run from the command line with its defaults. It is compared with confident
learning (cleanlab) on 5-fold cross-validated probabilities of the same network, trained for the same number of epochs.
Each entry is undermargin / cleanlab, averaged over seeds. Average precision (AP) measures the ranking, Matthews
correlation (MCC) the flags. F1 is listed too, but with much noise it rewards flagging everything. Times were measured
on one busy machine with one thread; those of undermargin include starting the program.

## Where undermargin is worse

- On satimage, and on letter with 20 % flipped labels, the cross-validated ranking is slightly better: a network that
  was not trained on a sample cannot have memorized its label.
- On adult with 20 % flipped labels, too many samples are flagged. With two classes, the Gaussian mixture alone
  determines the cutoff. For the same reason, almost twice as many samples as were flipped are flagged on sst2.
- On small tables and texts, a scan can take longer than five short trainings.

## How to read these numbers

- They are not results on unseen data. The rule behind the cutoff `auto` and the lengths of training were chosen while
  looking at seed 0 of these data sets, with cleanlab's results next to it.
- cleanlab was run with its defaults. The network, and when to stop training it, were chosen for `scan`. Each of
  cleanlab's networks is trained on a fifth fewer samples.
- Our average precision ranks flagged samples first, as `Verdicts` does; cleanlab's uses its score only.

On images, undermargin was never worse. Confident learning flags far too many samples there, possibly because its
networks are also trained on wrong labels, those of all samples that are not held out. Its five trainings also take
longer than two folds.

To run it again: `UNDERMARGIN_DATA=path python -m bench.quality`. Texts and tables were measured with an earlier version
of the code than images (see the commits).

## Results
"""


def stop() -> str:
    """The stop rule compared with longer trainings, for docs/scan.md."""
    rows = ["| data | flipped | stopped after | AP then | best AP in a training three times as long |"]
    rows.append("|---|---|---|---|---|")
    cells = [json.loads(line) for line in (BENCH / "stop.jsonl").read_text().splitlines()]
    for cell in cells:
        ended = "" if cell["stopped"] < cell["most_epochs"] else " (the maximum)"
        found = f"{cell['average_precision']:.3f} | {cell['best']:.3f} after {cell['best_epoch']}"
        rows.append(f"| {cell['data']} | {cell['rate']:.0%} | {cell['stopped']} epochs{ended} | {found} |")
    return _with(
        rows,
        f"Commits {_commits(cells)}; one fold, seed 0. The rule was chosen on earlier runs with the same data sets and "
        "noise rates.",
    )


def _with(rows: list[str], *sentences: str) -> str:
    """A table and the text below it."""
    return "\n".join(rows) + f"\n\n{wrapped(*sentences)}"


def wrapped(*sentences: str) -> str:
    """Sentences as one paragraph of lines with at most 120 characters."""
    return textwrap.fill(" ".join(sentences), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _commits(cells: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"`{cell['commit']}`" for cell in cells))


def _latest(section: str) -> dict[str, Any] | None:
    """The last stored result of a section of the benchmarks, if there is one."""
    lines = [json.loads(line) for line in (BENCH / "results.jsonl").read_text().splitlines()]
    return next((line for line in reversed(lines) if line["section"] == section), None)


def _digits(line: dict[str, Any]) -> str:
    rows = ["| flipped | epochs | precision | recall | flagged |", "|---|---|---|---|---|"]
    for row in line["results"]["rows"]:
        spans = [_span([seed[name] for seed in row["seeds"]]) for name in ("precision", "recall", "flagged_share")]
        if not row["rate"]:
            spans[:2] = ["", ""]
        rows.append(f"| {row['rate']:.0%} | {row['epochs']} | {' | '.join(spans)} |")
    seeds = ", ".join(str(one["seed"]) for one in line["results"]["rows"][0]["seeds"])
    return _with(
        rows,
        f"Mean (minimum to maximum) over seeds {seeds}; commit `{line['commit']}`.",
        "The network, the number of epochs and the cutoff were chosen on other seeds.",
    )


def _span(values: list[float]) -> str:
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _update(line: dict[str, Any]) -> str:
    peer = line["results"]["peer"]
    rows = [f"| batch x classes | {peer} | `Tracker` | `compat.aum` | all scores |", "|---|---|---|---|---|"]
    for case in line["results"]["cases"]:
        micros = case["microseconds"]
        base = micros["peer"]
        faster = [f"{micros[name]:.0f} ({base / micros[name]:.0f}x faster)" for name in ("tracker", "compat")]
        times = micros["all_scores"] / micros["tracker"]
        rows.append(
            f"| {case['batch']} x {case['classes']} | {base:.0f} | {' | '.join(faster)} "
            f"| {micros['all_scores']:.0f} ({times:.1f}x AUM alone) |"
        )
    operations = ", ".join(f"{number} at {case}" for case, number in line["results"]["operations"].items())
    return _with(
        rows,
        f"Dispatched operations per step, averaged over an epoch: {operations}. None of them waits for the device.",
        "With 1,000 classes the other scores need a softmax, which costs more than the margin itself.",
        f"Commit `{line['commit']}`.",
    )


def _scale(line: dict[str, Any]) -> str:
    rows = ["| samples | tracking (ns per sample and epoch) | peak memory | state |", "|---|---|---|---|"]
    for size, found in line["results"]["sizes"].items():
        rows.append(
            f"| {int(size):,} | {found['tracking']:.0f} | {found['peak_mib']:.0f} MiB "
            f"| {found['state_bytes']:.0f} bytes per sample |"
        )
    return _with(rows, f"Commit `{line['commit']}`.")


def _loop(line: dict[str, Any]) -> str:
    found, threads = line["results"], line["machine"]["num_threads"]
    bare, ours = (round(found["images_per_second"][name]) for name in ("bare", "scan"))
    return wrapped(
        f"`scan` trains {found['model']} on images of the size of CIFAR-10 at {found['ratio']:.1%} of the speed of a",
        "bare loop over tensors in memory (median ratio over rounds; median speeds",
        f"{ours} and {bare} images per second with {threads} thread{'' if threads == 1 else 's'};",
        f"`python -m bench loop`, commit `{line['commit']}`).",
    )


def _memory(line: dict[str, Any]) -> str:
    found = line["results"]
    return wrapped(
        f"A scan of {found['num_images']:,} such images needs at most {found['peak_mib']:,.0f} MiB of memory",
        f"(`python -m bench memory`, commit `{line['commit']}`).",
    )


README = {"digits": _digits, "update": _update, "scale": _scale, "loop": _loop, "memory": _memory}
