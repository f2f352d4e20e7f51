"""A plain loop and Accelerate need no adapter: the tracker merges the processes, and is registered for checkpoints."""

from collections import Counter

import pytest

from tests.adapters.torch_support import (
    NUM_SAMPLES,
    assert_equal_scores,
    assert_page_shows,
    aum,
    needs_scan,
    run_example,
    torchrun,
)


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_scores_are_those_of_a_plain_loop_in_any_number_of_processes_and_after_a_resume(num_ranks, tmp_path):
    ranks = torchrun(tmp_path, "accelerate_worker", ranks=num_ranks)
    rows = [row for found in ranks for row in found["rows"]]
    times = Counter((epoch, index) for epoch, index, *_ in rows)
    assert len(times) == 3 * NUM_SAMPLES
    assert (2 in times.values()) == (num_ranks > 1)  # two processes get batches of the same size, by repeating samples
    for found in ranks:
        assert_equal_scores(found["aum"], aum(rows))
        assert_equal_scores(found["resumed"], found["aum"])
        assert found["suggested"][0] == found["suggested"][1]
        assert found["losses"][0] == found["losses"][1]
        assert found["weights"][0] == found["weights"][1]


@needs_scan
@pytest.mark.parametrize("framework", ["pytorch", "accelerate"])
def test_the_example_finds_the_flipped_labels(framework, tmp_path):
    run_example(f"{framework}_digits", tmp_path)


@pytest.mark.parametrize("framework", ["pytorch", "accelerate"])
def test_the_page_shows_the_example(framework):
    assert_page_shows(framework, f"{framework}_digits")
