"""Real processes under torchrun, with the padding duplicates that distributed samplers make."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import reference
from undermargin import Tracker
from undermargin.tracking.scores import SCORES

ROOT = Path(__file__).parent.parent
NUM_SAMPLES, NUM_EPOCHS = 51, 3


def launch(tmp_path, ranks, *words):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    worker = ["-m", "tests.distributed_worker", str(tmp_path), *words]
    result = subprocess.run([*command, *worker], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert result.returncode == 0, result.stderr[-3000:]
    return [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(ranks)]


def data(epoch):
    generator = torch.Generator().manual_seed(epoch)
    return torch.randn(NUM_SAMPLES, 4, generator=generator)


@pytest.fixture(scope="module")
def expected():
    """The same observations in one process: each sample once an epoch."""
    stream = [
        [(index, index % 3, row.tolist()) for index, row in enumerate(data(epoch))] for epoch in range(NUM_EPOCHS)
    ]
    return {name: reference.scores(name, stream, NUM_SAMPLES) for name in SCORES}


def test_two_ranks_give_the_scores_of_one_process_on_both_of_them(tmp_path, expected):
    for found in launch(tmp_path, 2, "epochs"):
        for name in SCORES:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
        assert found["suggested"] == single_process_suggestions()


def single_process_suggestions():
    tracker = Tracker(NUM_SAMPLES, suggest=4)
    for epoch in range(NUM_EPOCHS):
        tracker.update(data(epoch), torch.arange(NUM_SAMPLES) % 3, torch.arange(NUM_SAMPLES))
        tracker.end_epoch()
    return tracker.suggestions()[0].tolist()


def test_reading_unmerged_scores_is_an_error_and_reduce_is_the_way_out(tmp_path):
    for found in launch(tmp_path, 2, "unmerged"):
        assert "only this one of 2 ranks" in found["scores_error"]
        assert "only this one of 2 ranks" in found["state_error"]
        # without epochs every observation counts; the sampler repeats one of the 51
        np.testing.assert_allclose(found["aum"], single_margins(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found["aum_again"], single_margins(), rtol=1e-5, atol=1e-5)


def single_margins():
    stream = [[(index, index % 3, row.tolist()) for index, row in enumerate(data(0))]]
    return reference.scores("aum", stream, NUM_SAMPLES)


def test_a_job_of_two_ranks_goes_on_in_mid_epoch_with_one_and_with_three(tmp_path, expected):
    for ranks in (1, 3):
        launch(tmp_path, 2, "first-part")
        for found in launch(tmp_path, ranks, "second-part"):
            np.testing.assert_allclose(found["aum"], expected["aum"], rtol=1e-5, atol=1e-5)


def test_a_rank_that_saw_nothing_takes_part(tmp_path):
    for found in launch(tmp_path, 2, "idle-rank"):
        np.testing.assert_allclose(found["aum"], single_margins(), rtol=1e-5, atol=1e-5)


def test_ranks_that_do_not_record_the_same_are_told_so_instead_of_hanging(tmp_path):
    for found in launch(tmp_path, 2, "recording-on-one-rank"):
        assert "give every rank the same trajectories=" in found["error"]
