"""Ray Train with two real workers: what the tracker counts, and that it survives a failure."""

import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.adapters.torch_support import (
    NUM_SAMPLES,
    ROOT,
    assert_equal_scores,
    assert_page_shows,
    aum,
    error_without,
    needs_scan,
    run_example,
)
from undermargin.errors import InputError


@pytest.mark.slow
def test_two_workers_count_every_sample_once_an_epoch_and_resume_after_a_failure_in_mid_epoch(tmp_path):
    command = [sys.executable, "-m", "tests.adapters.ray_driver", str(tmp_path)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # the workers import this package too
    environment = os.environ | {"PYTHONPATH": path}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    ranks = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    rows = [row for found in ranks for row in found["rows"]]
    times = Counter((epoch, index) for epoch, index, *_ in rows)
    assert sorted(Counter(times.values()).items()) == [(1, 3 * (NUM_SAMPLES - 1)), (2, 3)]
    for found in ranks:
        assert_equal_scores(found["aum"], aum(rows))
        assert found["start"] == [1, 3]  # the second attempt went on from the checkpoint
    driver = json.loads((tmp_path / "driver.json").read_text())
    assert_equal_scores(driver["aum"], ranks[0]["aum"])
    assert driver["suggested"] == ranks[0]["suggested"]
    assert driver["error"].endswith("no tracker called 'undermargin'; it holds fold0")


@pytest.mark.filterwarnings("ignore:::ray")
def test_a_result_without_a_checkpoint_is_an_error_that_says_what_to_call():
    from undermargin.adapters.ray import load

    with pytest.raises(InputError, match=r"Call report\(tracker, metrics\)"):
        load(SimpleNamespace(checkpoint=None))


def test_without_ray_the_adapter_names_the_extra():
    assert error_without("ray", "ray").endswith('ray is not installed. Run: pip install "undermargin[ray]"')


@needs_scan
@pytest.mark.slow
def test_the_example_finds_the_flipped_labels(tmp_path):
    run_example("ray_digits", tmp_path)


def test_the_page_shows_the_example():
    assert_page_shows("ray", "ray_digits")
