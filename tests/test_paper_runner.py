"""The runner: killed processes, shared trainings, and the provenance of results."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.watching import written
from undermargin.errors import InputError
from undermargin.paper import Results, Runner, Store
from undermargin.paper.cell import Cell
from undermargin.paper.runner import commit

SMOKE = Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard")


def test_nothing_is_run_twice_and_results_carry_their_provenance(tmp_path, monkeypatch):
    torch.conv2d(torch.zeros(1, 1, 3, 3), torch.zeros(1, 1, 3, 3))  # oneDNN reads this once, and must not obey it here
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    runner = Runner(Store(tmp_path), tmp_path)
    seen = []
    runner.run([SMOKE, SMOKE], lambda cell, numbers: seen.append(numbers))
    runner.run([SMOKE], lambda cell, numbers: seen.append(numbers))
    assert len(seen) == 1
    row = json.loads((tmp_path / "results.jsonl").read_text())
    assert row["numbers"]["test_error"] == seen[0]["test_error"]
    assert row["study"]["budget"]["epochs"] == 2
    assert {"key", "kind", "preset", "data", "noise", "rate", "recipe", "seed", "seconds", "commit"} <= set(row)
    assert {"version", "torch", "num_threads", "processor", "source"} <= set(row)
    assert row["onednn"] == "AVX2"


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_result_names_the_commit_of_its_code_and_says_whether_that_was_changed(tmp_path, monkeypatch):
    code = tmp_path / "package" / "__init__.py"
    code.parent.mkdir()
    code.write_text("")
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init"], ["add", "."], [*author, "commit", "-m", "first"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)
    monkeypatch.setattr("undermargin.__file__", str(code))
    clean = commit()
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (tmp_path / "results.jsonl").write_text("stored in the same checkout\n")
    assert commit() == clean
    for words in (["add", "."], [*author, "commit", "-m", "results"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)
    assert commit() == clean
    code.write_text("changed = True\n")
    assert commit() == f"{clean}-dirty"


def test_how_long_a_cell_takes_is_told_from_those_like_it(tmp_path):
    store = Store(tmp_path)
    for seed, seconds in enumerate((10, 90, 20)):
        store.add(replace(SMOKE, seed=seed), {"test_error": 0.1}, {"seconds": seconds})
    results = Results.read(store, "smoke", tmp_path)
    assert results.seconds(replace(SMOKE, seed=5, rate=0.2)) == 20
    assert results.seconds(replace(SMOKE, recipe="aum")) is None


def test_a_cell_that_others_began_is_marked_and_tells_nothing_of_how_long_it_takes(tmp_path):
    identified, fitted = Cell("identification", "smoke", "mnist"), Cell("fit", "smoke", "mnist")
    store = Store(tmp_path)
    Runner(store, tmp_path).run([identified, fitted, replace(fitted, recipe="standard")])
    rows = store.results()
    assert [key for key, row in rows.items() if "resumed" in row] == [fitted.key]  # its folds were there already
    other = replace(fitted, seed=7)
    store.add(other, {"test_error": 0.1}, {"seconds": 1234.5})
    assert Results.read(store, "smoke", tmp_path).seconds(fitted) == 1234.5


def test_finished_folds_of_another_commit_are_used_and_named(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for code, kind in (("before", "identification"), ("after", "fit")):
        monkeypatch.setattr("undermargin.paper.runner.commit", lambda code=code: code)
        Runner(store, tmp_path).run([Cell(kind, "smoke", "mnist")])
    before, after = store.results().values()
    assert [(row["commit"], "resumed" in row) for row in (before, after)] == [("before", False), ("after", True)]
    assert {stage: about["commit"] for stage, about in after["shared"].items()} == {
        "fold0": "before",
        "fold1": "before",
    }
    assert not list((tmp_path / "work").glob("*-after/fold*"))


def test_folds_that_another_commit_has_begun_are_trained_anew(tmp_path, monkeypatch):
    cell = Cell("fit", "smoke", "mnist")
    stores = [Store(tmp_path / name) for name in ("killed", "alone")]
    monkeypatch.setattr("undermargin.paper.runner.commit", lambda: "before")
    Runner(stores[0], tmp_path).run([Cell("identification", "smoke", "mnist")])
    (stores[0].records(cell) / "fold1.json").unlink()  # as if killed in the last epoch of the second fold
    for logits in stores[0].records(cell).glob("fold1.logits"):
        logits.write_bytes(bytes(logits.stat().st_size))
    monkeypatch.setattr("undermargin.paper.runner.commit", lambda: "after")
    for store in stores:
        Runner(store, tmp_path).run([cell])
    killed, alone = (store.results()[cell.key] for store in stores)
    assert {stage: about["commit"] for stage, about in killed["shared"].items()} == {
        "fold0": "before",
        "fold1": "after",
    }
    assert killed["numbers"] == alone["numbers"]


def test_a_divergence_is_a_result(tmp_path):
    runner = Runner(Store(tmp_path), tmp_path)
    cell = SMOKE.varied(learning_rate=1e30)
    runner.run([cell])
    assert "diverged in epoch 1" in Store(tmp_path).results()[cell.key]["numbers"]["diverged"]


def test_one_cell_that_fails_does_not_keep_the_others_from_running(tmp_path):
    store = Store(tmp_path)
    absent = Cell("fit", "laptop", "mnist", "uniform", 0.4, "standard")
    with pytest.raises(InputError, match="mnist is not in"):
        Runner(store, tmp_path).run([absent, SMOKE])
    assert set(store.results()) == {SMOKE.key}


def test_a_line_that_a_kill_cut_off_is_run_again_and_a_strange_one_is_an_error(tmp_path):
    store = Store(tmp_path)
    Runner(store, tmp_path).run([SMOKE])
    whole = store.path.read_text()
    store.path.write_text(whole + whole[:40])
    assert set(store.results()) == {SMOKE.key}
    other = SMOKE.varied(epochs=1)
    Runner(store, tmp_path).run([SMOKE, other])
    assert set(store.results()) == {SMOKE.key, other.key}
    store.path.write_text("{}\n" + whole)
    with pytest.raises(InputError, match=r"line 1 of .*results.jsonl is not a result"):
        store.results()


def test_several_jobs_find_what_one_finds(tmp_path):
    cells = [SMOKE, Cell("fit", "smoke", "mnist", "uniform", 0.4), Cell("identification", "smoke", "mnist")]
    found = []
    for jobs in (1, 2):
        store = Store(tmp_path / str(jobs))
        Runner(store, tmp_path, num_jobs=jobs).run(cells)
        found.append({key: row["numbers"] for key, row in store.results().items()})
    assert json.dumps(found[0], sort_keys=True) == json.dumps(found[1], sort_keys=True)


@pytest.mark.slow
def test_a_ray_cluster_finds_what_one_process_finds(tmp_path):
    ray = pytest.importorskip("ray")
    cells = [SMOKE, Cell("identification", "smoke", "mnist")]
    stores = [Store(tmp_path / name) for name in ("here", "there")]
    Runner(stores[0], tmp_path).run(cells)
    try:
        Runner(stores[1], tmp_path, on_cluster=True).run(cells)
    finally:
        ray.shutdown()
    here, there = ({key: row["numbers"] for key, row in store.results().items()} for store in stores)
    assert json.dumps(here, sort_keys=True) == json.dumps(there, sort_keys=True)


def test_a_killed_runner_loses_at_most_the_running_cell(tmp_path):
    """Killed as soon as it has written something, five times; the results are those of a runner left alone."""
    names = ("aum, probability", "bmm", "co_teaching")
    only = [word for name in names for word in ("--only", name)]
    words = [sys.executable, "-m", "undermargin", "paper", "table-cifar-uniform", "--preset", "smoke", *only, "--out"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    killed, alone = Store(tmp_path / "killed"), Store(tmp_path / "alone")
    for _ in range(5):
        before = written(killed.folder)
        process = subprocess.Popen([*words, str(killed.folder)], env=environment, stdout=subprocess.DEVNULL)
        while written(killed.folder) == before and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(killed.results()) < 3  # or it was never killed at work
    for store in (killed, alone):
        subprocess.run([*words, str(store.folder)], check=True, env=environment, stdout=subprocess.DEVNULL)
    numbers = [{key: row["numbers"] for key, row in store.results().items()} for store in (killed, alone)]
    assert len(numbers[0]) == 3
    assert json.dumps(numbers[0], sort_keys=True) == json.dumps(numbers[1], sort_keys=True)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_workers_end_with_a_runner_that_is_killed(tmp_path):
    process = _at_work(_side_by_side(tmp_path), tmp_path)
    workers = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 2
    started = time.monotonic()
    while any(Path(f"/proc/{worker}/stat").exists() and not _is_dead(worker) for worker in workers):
        assert time.monotonic() - started < 60
        time.sleep(0.1)
    process.communicate()  # not before: workers that went on would keep what they say open


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_worker_that_is_killed_loses_its_own_cell_alone(tmp_path):
    words = _side_by_side(tmp_path)
    process = _at_work(words, tmp_path)
    begun = [one for one in _children(process.pid) if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    os.kill(begun[0], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "its process was killed; was there enough memory?" in said
    assert "Traceback" not in said
    assert len(Store(tmp_path).results()) == 1
    subprocess.run(words, check=True, capture_output=True)
    assert len(Store(tmp_path).results()) == 2


def _side_by_side(folder):
    """The command that runs two cells, each in a process of its own."""
    words = ["-m", "undermargin", "paper", "table-set-size", "--preset", "smoke", "--jobs", "2", "--out", str(folder)]
    return [sys.executable, *words]


def _at_work(words, folder):
    """A command that has begun to train."""
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not list(folder.rglob("*.safetensors")):
        assert process.poll() is None
        time.sleep(0.01)
    return process


def _children(parent):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _is_dead(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
