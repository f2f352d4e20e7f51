import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undermargin import Run, identify
from undermargin.errors import IdentifyError, InputError


def test_flagged_at_or_below_the_cutoff_kept_above_and_threshold_samples_unjudged(run):
    verdicts = identify(run([5.0, 1.0, 0.0, 2.0], threshold=[1]))
    assert [verdicts[index] for index in range(4)] == ["kept", "unjudged", "flagged", "kept"]


def test_at_the_cutoff_the_paper_flags_and_the_authors_code_does_not(run):
    tied = run([1.0, 1.0], threshold=[1])
    assert identify(tied)[0] == "flagged"  # the default is the paper's cutoff
    assert identify(tied, "paper")[0] == "flagged"
    assert identify(tied, "reference")[0] == "kept"


def test_one_run_that_acquits_is_enough_to_keep_a_sample(run):
    accuses = run([9, 0, 1, 9], threshold=[2])
    acquits = run([9, 9, 9, 1], threshold=[3])
    assert identify([accuses, acquits])[1] == "kept"
    assert identify([accuses, accuses])[1] == "flagged"


def test_a_threshold_sample_of_one_run_is_judged_by_the_other_alone(run):
    verdicts = identify([run([0, 9, 0], threshold=[0]), run([-1, 9, 0], threshold=[2])])
    assert verdicts[0] == "flagged"
    assert verdicts.judged_by.tolist() == [1, 2, 1]


def test_the_score_is_the_mean_over_the_runs_that_judged(run):
    verdicts = identify([run([4.0, 1.0, 8.0], threshold=[1]), run([2.0, 5.0, 0.0], threshold=[2])])
    assert verdicts.scores.tolist() == [3.0, 5.0, 8.0]
    np.testing.assert_array_equal(verdicts.fold_scores, [[4, np.nan, 8], [2, 5, np.nan]])


def test_a_sample_without_a_score_is_unjudged_and_the_notes_say_so(run):
    verdicts = identify(run([np.nan, 3.0, 1.0], threshold=[2]))
    assert verdicts[0] == "unjudged"
    assert any("1 of 3 samples were never observed" in note for note in verdicts.summary()["notes"])


def test_samples_that_were_left_out_by_intention_are_not_wondered_about(run):
    both = run([np.nan, np.nan, 3.0, 1.0], threshold=[3])
    assert not any("never observed" in note for note in identify(both, left_out=[0, 1]).summary()["notes"])
    assert any("1 of 4 samples were never" in note for note in identify(both, left_out=[0]).summary()["notes"])


def test_few_threshold_samples_are_noted(run):
    assert any("only 1 threshold samples" in note for note in identify(run([1, 2], threshold=[0])).summary()["notes"])


def test_another_percentile_and_a_number_of_ones_own(run):
    scores = np.arange(200.0)
    wide = run(scores, threshold=range(100))
    assert identify(wide, percentile=50).summary()["cutoff"]["values"] == [49.0]
    assert identify(wide, 149.5).is_flagged.sum() == 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cutoff": np.nan}, "expected a name, a finite number"),
        ({"cutoff": None}, "cutoff is None"),
        ({"percentile": 101}, "percentile is 101"),
        ({"cutoff": 1.5, "percentile": 95}, "cutoff 1.5 has no percentile to change"),
    ],
)
def test_rules_that_make_no_sense_are_refused(run, settings, message):
    with pytest.raises(IdentifyError, match=message):
        identify(run([1.0, 2.0], threshold=[0]), **settings)


def test_many_runs_are_counted(run):
    one = run([0.0, 5.0, 1.0], threshold=[2])
    verdicts = identify([one] * 300)
    assert verdicts.judged_by.tolist() == [300, 300, 0]
    assert verdicts[0] == "flagged"


def test_what_only_a_later_run_knows_is_known(run):
    scores = np.array([0.0, 1.0, 2.0])
    known = Run(scores, labels=[0, 1, 1], ids=["a", "b", "c"], class_names=["x", "y"])
    verdicts = identify([Run(scores), known], 0.5)
    assert (verdicts.labels.tolist(), verdicts.ids, verdicts.class_names) == ([0, 1, 1], ["a", "b", "c"], ["x", "y"])


def test_a_cutoff_a_class_judges_each_sample_by_its_own(rng):
    labels = np.repeat([0, 1], 1000)
    scores = np.concatenate([rng.normal(-3, 1, 300), rng.normal(3, 1, 700)] * 2) + labels * 20
    verdicts = identify(Run(scores, labels=labels), "per_class")
    assert np.bincount(labels[verdicts.is_flagged]).tolist() == pytest.approx([300, 300], abs=15)


def test_suggestions_are_the_strongest_rival_where_flagged_and_the_label_elsewhere():
    run = Run(
        scores=[-5, 5, -4, 0],
        is_threshold=[False, False, False, True],
        labels=[0, 1, 2, 0],
        class_names=["ant", "bee", "cat"],
        suggested_labels=[1, 2, -1, 0],
        suggestion_confidence=[0.9, 0.1, 0.0, 0.5],
    )
    verdicts = identify(run)
    assert verdicts.suggested_labels.tolist()[:3] == [1, 1, -1]  # the last is flagged, and nobody ever beat it
    assert verdicts.suggestion_confidence.tolist()[:3] == pytest.approx([0.9, 0.9, 0.0])
    assert verdicts.suggested_labels[3] == -1
    assert np.isnan(verdicts.suggestion_confidence[3])  # judged by nobody
    without = verdicts.to_pandas().set_index("index")["suggested_label"].isna().sort_index()
    assert without.tolist() == [False, False, True, True]
    confusion = {"label": "ant", "suggested_label": "bee", "num_samples": 1}
    assert verdicts.summary()["confusions"] == [confusion]


def test_where_runs_suggest_different_classes_the_surer_one_speaks_with_less_weight():
    common = {"labels": [0, 0], "is_threshold": [False, True]}
    first = Run(scores=[-5, 0], suggested_labels=[1, -1], suggestion_confidence=[0.8, 0], **common)
    second = Run(scores=[-5, 0], suggested_labels=[2, -1], suggestion_confidence=[0.5, 0], **common)
    verdicts = identify([first, second])
    assert verdicts.suggested_labels[0] == 1
    assert verdicts.suggestion_confidence[0] == pytest.approx(0.4)


def test_runs_that_do_not_belong_together_are_refused(run):
    with pytest.raises(IdentifyError, match="no runs"):
        identify([])
    with pytest.raises(IdentifyError, match="2 and 3 samples"):
        identify([run([1, 2], threshold=[0]), run([1, 2, 3], threshold=[0])])
    with pytest.raises(IdentifyError, match="different scores: aum, el2n"):
        identify([run([1, 2], threshold=[0]), run([1, 2], threshold=[0], score="el2n")])
    with pytest.raises(IdentifyError, match="disagree about the samples' labels"):
        identify([run([1, 2], threshold=[0], labels=[0, 1]), run([1, 2], threshold=[0], labels=[1, 1])])
    with pytest.raises(IdentifyError, match="disagree about the samples' ids"):
        identify([run([1, 2], threshold=[0], ids=["a", "b"]), run([1, 2], threshold=[0], ids=["b", "a"])])


numbers = st.floats(-10, 10, width=32)
rows = st.tuples(numbers, numbers, st.sampled_from(["", "first", "second"]))


@given(st.lists(rows, min_size=3, max_size=40))
def test_verdicts_of_two_folds_combine_as_specified_and_their_order_agrees(samples):
    samples = [(0.0, 0.0, "first"), (0.0, 0.0, "second"), *samples]
    first = Run([s[0] for s in samples], [s[2] == "first" for s in samples])
    second = Run([s[1] for s in samples], [s[2] == "second" for s in samples])
    verdicts = identify([first, second])
    cutoffs = verdicts.summary()["cutoff"]["values"]
    expected = []
    for one, two, where in samples:
        flags = [one <= cutoffs[0]] * (where != "first") + [two <= cutoffs[1]] * (where != "second")
        expected.append("flagged" if all(flags) else "kept")
    assert [verdicts[index] for index in range(len(samples))] == expected
    ordered = [verdicts[index] for index in verdicts.order]
    assert ordered == sorted(ordered)  # flagged before kept
    for verdict in ("flagged", "kept"):
        excess = [verdicts.excess[index] for index in verdicts.order if verdicts[index] == verdict]
        assert excess == sorted(excess)


def test_a_cutoff_that_flags_nobody_still_orders_by_score(run):
    scores = np.r_[np.ones(490), np.linspace(0, 0.9, 10)]
    verdicts = identify(run(scores, labels=np.zeros(500, int)), "beta")  # saturated: there is nothing to fit
    assert not len(verdicts.flagged)
    assert verdicts.order[:10].tolist() == list(range(490, 500))
    assert verdicts.summary()["cutoff"]["values"][0] < 0


def test_runs_that_name_their_classes_differently_are_refused(run):
    ours, theirs = (run([0, 1, 2, 3], threshold=[1], labels=[0, 1, 0, 1], class_names=list(ab)) for ab in ("ab", "ba"))
    with pytest.raises(IdentifyError, match="disagree about the names of the classes"):
        identify([ours, theirs])


def test_a_cutoff_equal_to_the_highest_score_is_noted_to_separate_no_samples(run):
    tied = identify(run([0, 0, 0, -1, 0], threshold=[4]))
    assert tied.flagged.tolist() == [3, 0, 1, 2]
    assert any("it separates no samples" in note for note in tied.summary()["notes"])
    apart = identify(run([5, 0, 9, 9], threshold=[1]))
    assert not any("it separates no samples" in note for note in apart.summary()["notes"])


def test_the_summary_of_few_threshold_samples_is_json_that_everybody_reads(run):
    summary = identify(run([5, 0, 9, 9], threshold=[1])).summary()
    assert summary["cutoff"]["interval"][0][1] is None  # there is no upper end
    json.dumps(summary, allow_nan=False)


def test_class_names_may_be_a_mapping_from_class_numbers():
    names = {1: "dog", 0: "cat"}  # as Hugging Face's id2label
    assert Run([1.0, 2.0], labels=[0, 1], class_names=names).class_names == ["cat", "dog"]
    assert Run([1.0], class_names={"0": "cat"}).class_names == ["cat"]  # as JSON has it
    with pytest.raises(InputError, match="a mapping from 1, 2; expected 0..1"):
        Run([1.0], class_names={1: "cat", 2: "dog"})
