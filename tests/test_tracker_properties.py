"""Whatever way a stream of observations is cut up, the scores are those of a plain loop."""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import reference
from undermargin import Tracker
from undermargin.tracking.scores import SCORES

NUM_SAMPLES, NUM_CLASSES = 4, 3
NAMES = list(SCORES)
ADDITIVE = [name for name, score in SCORES.items() if not score.needs_epochs]

logits = st.lists(st.floats(-30, 30, width=32), min_size=NUM_CLASSES, max_size=NUM_CLASSES)
# a sample's label does not change: it is its index modulo the classes
observation = st.tuples(st.integers(0, NUM_SAMPLES - 1), logits).map(lambda o: (o[0], o[0] % NUM_CLASSES, o[1]))
epoch = st.lists(observation, max_size=12)
streams = st.lists(epoch, min_size=1, max_size=5)


def batches(data, observations):
    """The observations in order, cut into batches at random."""
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(observations) - 1, 1)), max_size=4)))
    edges = [0, *cuts, len(observations)]
    return [observations[a:b] for a, b in pairwise(edges)]


def observe(tracker, batch):
    if batch:
        indices, labels, rows = zip(*batch, strict=True)
        tracker.update(torch.tensor(rows), list(labels), list(indices))


def assert_equal_to_loop(tracker, name, stream):
    expected = reference.scores(name, stream, NUM_SAMPLES)
    # A mean of margins +1 and -1 has no digits of its own, so margins are relative to the logits that went in.
    # Differences of probabilities are relative to 1; everything else to itself.
    largest = max([abs(z) for epoch in stream for *_, row in epoch for z in row] + [1.0])
    # A trend is a slope divided by a deviation of .01 or more, which multiplies the error of a probability by 100.
    scales = {"variability": 1, "signed_entropy": 1, "confidence_trend": 100}
    scale = largest if SCORES[name].signal == "margin" else scales.get(name, 1 if "margin" in name else 1e-3)
    np.testing.assert_allclose(tracker.scores(name), expected, rtol=1e-5, atol=1e-5 * scale, err_msg=name)


@settings(deadline=None, max_examples=150)
@given(streams, st.data())
def test_any_split_into_batches_and_trackers_gives_the_additive_scores_of_a_loop(stream, data):
    main = Tracker(NUM_SAMPLES, ADDITIVE)
    for observations in stream:
        others = [Tracker(NUM_SAMPLES, ADDITIVE) for _ in range(2)]
        for batch in batches(data, observations):
            observe(data.draw(st.sampled_from([main, *others])), batch)
        for other in others:
            main.merge(other)
        main.end_epoch()
    for name in ADDITIVE:
        assert_equal_to_loop(main, name, stream)


@settings(deadline=None, max_examples=100)
@given(epoch, st.data())
def test_without_epochs_any_split_gives_the_mean_over_observations(observations, data):
    trackers = [Tracker(NUM_SAMPLES, ADDITIVE) for _ in range(3)]
    for batch in batches(data, observations):
        observe(data.draw(st.sampled_from(trackers)), batch)
    for other in trackers[1:]:
        trackers[0].merge(other)
    for name in ADDITIVE:
        assert_equal_to_loop(trackers[0], name, [observations])


@settings(deadline=None, max_examples=150)
@given(streams, st.data())
def test_any_split_along_epochs_gives_all_scores_of_a_loop(stream, data):
    main = Tracker(NUM_SAMPLES, NAMES)
    current = main
    for observations in stream:
        for batch in batches(data, observations):
            observe(current, batch)
        current.end_epoch()
        if data.draw(st.booleans()):
            if current is not main:
                main.merge(current)
            current = Tracker(NUM_SAMPLES, NAMES)
    if current is not main:
        main.merge(current)
    for name in NAMES:
        assert_equal_to_loop(main, name, stream)


@settings(deadline=None, max_examples=50)
@given(streams, st.data())
def test_saving_and_loading_at_any_moment_changes_nothing(tmp_path_factory, stream, data):
    path = tmp_path_factory.mktemp("tracker") / "state"
    whole, saved = Tracker(NUM_SAMPLES, NAMES, suggest=NUM_CLASSES), Tracker(NUM_SAMPLES, NAMES, suggest=NUM_CLASSES)
    for observations in stream:
        for batch in batches(data, observations):
            observe(whole, batch)
            observe(saved, batch)
            if data.draw(st.booleans()):
                saved.save(path)
                saved = Tracker.load(path)
        whole.end_epoch()
        saved.end_epoch()
    for name in NAMES:
        # to the last digit but one: batches that are joined otherwise pass through other kernels
        np.testing.assert_allclose(saved.scores(name), whole.scores(name), rtol=1e-6, atol=1e-7)
    for ours, theirs in zip(saved.suggestions(), whole.suggestions(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
