import numpy as np
import pytest
from scipy import stats

from undermargin import Run, identify
from undermargin.cutoffs import CUTOFFS, by_class_rates, by_rate, choose, find
from undermargin.cutoffs.mixtures import beta_boundary, boundary_between_means, fit_betas, gaussian_boundary
from undermargin.cutoffs.percentile import normal_percentile, percentile, percentile_interval
from undermargin.errors import IdentifyError


def test_the_papers_percentile_makes_every_decision_of_the_authors_rule(rng):
    """Flagged iff more than 1 % of the threshold samples score strictly higher, for many sizes and with ties."""
    for size in (1, 50, 99, 100, 101, 150, 445, 450):
        for decimals in (1, 8):
            scores = rng.normal(size=size + 200).round(decimals)
            is_threshold = np.arange(len(scores)) < size
            by_authors = (scores[:, None] < scores[is_threshold]).mean(axis=1) > 0.01
            cutoff = percentile(Run(scores, is_threshold))
            np.testing.assert_array_equal(scores < cutoff, by_authors)


def test_a_percentile_worked_out_by_hand(run):
    scores = np.arange(200.0)
    assert percentile(run(scores, threshold=range(100))) == 98.0  # the 99th of 0..99
    assert percentile(run(scores, threshold=range(100)), share=50) == 49.0


def test_the_interval_of_the_percentile_covers_it_as_often_as_it_says(rng):
    true = stats.norm.ppf(0.9)
    hits = 0
    for _ in range(400):
        low, high = percentile_interval(Run(rng.normal(size=300), np.ones(300, bool)), share=90)
        hits += low <= true <= high
    assert 0.93 <= hits / 400 <= 0.99


def test_with_few_threshold_samples_the_interval_has_no_upper_end(run):
    low, high = percentile_interval(run(np.arange(100.0), threshold=range(100)))
    assert low < 99
    assert high == np.inf


def two_groups(rng, num_low=300, num_high=700, gap=6.0):
    return np.concatenate([rng.normal(-gap / 2, 1, num_low), rng.normal(gap / 2, 1, num_high)])


def test_two_gaussians_are_cut_where_their_densities_cross(rng):
    scores = two_groups(rng, 5000, 5000)
    assert gaussian_boundary(Run(scores)) == pytest.approx(0, abs=0.15)  # equal weights and widths: half way
    # with unequal weights the crossing moves towards the smaller group by log(w2 / w1) * variance / gap
    uneven = two_groups(rng, 2000, 8000)
    assert gaussian_boundary(Run(uneven)) == pytest.approx(-np.log(4) / 6, abs=0.15)


def test_two_betas_recover_the_distributions_they_were_drawn_from(rng):
    values = np.concatenate([rng.beta(2, 12, 6000), rng.beta(14, 3, 4000)])
    weights, alphas, betas = fit_betas(values, steps=100)
    np.testing.assert_allclose(weights, [0.6, 0.4], atol=0.02)
    np.testing.assert_allclose(alphas / (alphas + betas), [2 / 14, 14 / 17], atol=0.02)
    np.testing.assert_allclose(alphas, [2, 14], rtol=0.15)
    weights, alphas, betas = fit_betas(values)  # the authors stop after ten steps, near enough
    np.testing.assert_allclose(weights, [0.6, 0.4], atol=0.05)


def test_two_betas_are_cut_between_the_groups(rng):
    losses = np.concatenate([rng.beta(2, 12, 6000), rng.beta(14, 3, 4000)]) * 5
    cutoff = beta_boundary(Run(-losses))
    is_high = np.arange(10_000) >= 6000
    assert ((-losses <= cutoff) == is_high).mean() > 0.98


@pytest.mark.parametrize("name", [name for name, row in CUTOFFS.items() if not row.needs_threshold])
def test_every_mixture_separates_two_clear_groups(name, rng):
    scores = two_groups(rng)
    is_low = np.arange(1000) < 300
    run = Run(scores, labels=rng.integers(0, 2, 1000))
    value = find(CUTOFFS[name], run).value
    cutoff = value[run.labels] if isinstance(value, np.ndarray) else value
    assert ((scores <= cutoff) == is_low).mean() > 0.97


@pytest.mark.parametrize("name", [name for name, row in CUTOFFS.items() if row.find])
def test_every_cutoff_survives_equal_scores_and_a_handful_of_samples(name):
    labels, is_threshold = np.array([0, 1, 0, 1, 0, 1]), np.array([True, False, False, False, False, False])
    for scores in (np.zeros(6), np.array([1.0, 2, 3, 4, 5, 6])):
        value = find(CUTOFFS[name], Run(scores, is_threshold, labels=labels)).value
        assert not np.isnan(value).any()


def test_a_rare_class_gets_nearly_the_common_cutoff_and_a_large_one_nearly_its_own(rng):
    large = two_groups(rng, 3000, 7000)
    shifted = two_groups(rng, 3000, 7000) + 10
    rare = two_groups(rng, 6, 14) + 10
    run = Run(np.concatenate([large, shifted, rare]), labels=np.repeat([0, 1, 2], [10_000, 10_000, 20]))
    common = gaussian_boundary(run)
    first, second, third = find(CUTOFFS["per_class"], run).value
    assert first == pytest.approx(gaussian_boundary(Run(large)), abs=0.2)
    assert second == pytest.approx(gaussian_boundary(Run(shifted)), abs=0.2)
    assert abs(third - common) < abs(second - common) / 2


def test_what_a_cutoff_needs_and_a_run_lacks_is_an_error_that_names_the_way_out(run):
    with pytest.raises(IdentifyError, match="needs none: gaussian, beta"):
        find(CUTOFFS["paper"], run([1, 2, 3]))
    with pytest.raises(IdentifyError, match="has no labels"):
        find(CUTOFFS["per_class"], run([1, 2, 3]))
    with pytest.raises(IdentifyError, match="none of the 2 samples can be judged"):
        find(CUTOFFS["paper"], run([1, 2], threshold=[0, 1]))
    with pytest.raises(IdentifyError, match="none of the 1 threshold samples was observed"):
        find(CUTOFFS["paper"], run([np.nan, 2], threshold=[0]))


@pytest.mark.parametrize("number", [1, 1.0, np.float32(1), np.int64(1)])
def test_any_plain_number_is_a_cutoff_and_a_truth_value_is_none(number):
    assert identify(Run([0.0, 2.0]), number).is_flagged.tolist() == [True, False]
    with pytest.raises(IdentifyError, match="cutoff is True"):
        choose(True)


def test_two_samples_are_too_few_for_two_betas_and_nobody_is_flagged():
    assert not identify(Run([0.0, 1.0]), "beta").is_flagged.any()


def test_cutoffs_are_chosen_by_name_number_or_as_they_are():
    assert choose("beta") is CUTOFFS["beta"]
    assert choose(1.5).find(Run(np.zeros(2))) == 1.5
    assert choose(CUTOFFS["beta"]) is CUTOFFS["beta"]
    with pytest.raises(IdentifyError, match="no cutoff 'papr'; choose from paper"):
        choose("papr")
    with pytest.raises(IdentifyError, match="'gaussian' has no percentile to change; these have one: paper, reference"):
        choose("gaussian", share=95)


def judged_and_threshold(judged, threshold, num_classes=3):
    """A run of judged samples, then threshold samples."""
    scores = np.concatenate([judged, threshold])
    is_threshold = np.arange(len(scores)) >= len(judged)
    return Run(scores, is_threshold, labels=np.arange(len(scores)) % num_classes)


def test_auto_is_the_lower_of_percentile_and_gaussians_and_says_which(rng):
    apart = two_groups(rng)
    above = judged_and_threshold(apart, np.full(1000, 20.0))
    assert find(CUTOFFS["auto"], above).value == boundary_between_means(above)
    assert find(CUTOFFS["auto"], above).reason.startswith("the boundary between two Gaussians is the strictest")
    below = judged_and_threshold(apart, np.full(1000, -20.0))
    assert find(CUTOFFS["auto"], below).value == -20
    assert find(CUTOFFS["auto"], below).reason.startswith("the paper's percentile is the strictest")


def test_with_two_classes_auto_looks_at_the_gaussians_alone(rng):
    run = judged_and_threshold(two_groups(rng), np.full(1000, -20.0), num_classes=2)
    assert find(CUTOFFS["auto"], run).value == boundary_between_means(run)


def test_of_few_threshold_samples_unlucky_ones_do_not_carry_autos_cutoff_away(rng):
    clean = rng.normal(10, 1, 1000)
    # by hand: 98 scores of -1 and 1, two of 7; mean .14, mean square (98 + 2 * 49) / 100 = 1.96, deviation 1.3930
    scores = np.array([-1.0, 1.0] * 49 + [7.0, 7.0])
    few = judged_and_threshold(clean, scores)
    assert percentile(few) == 7
    assert normal_percentile(few) == pytest.approx(0.14 + stats.norm.ppf(0.99) * np.sqrt(1.96 - 0.14**2))
    assert find(CUTOFFS["auto"], few).value == normal_percentile(few)
    assert "mean and deviation of few threshold samples" in find(CUTOFFS["auto"], few).reason
    assert find(CUTOFFS["paper"], few).value == 7  # the paper's own rule stays what it is
    many = judged_and_threshold(clean, np.tile(scores, 2))  # of 200 the percentile is trusted
    assert find(CUTOFFS["auto"], many).value == 7


def test_the_percentile_by_mean_and_deviation_varies_half_as_much_with_few_samples(rng):
    draws = [Run(rng.normal(size=130), np.ones(130, bool)) for _ in range(300)]
    by_order, by_moments = (np.std([rule(run) for run in draws]) for rule in (percentile, normal_percentile))
    assert by_moments < 0.65 * by_order


def test_a_known_rate_flags_that_share_of_the_lowest_scores_and_no_threshold_samples(run):
    scores = [5, 1, 4, 2, 3, 0]
    assert identify(run(scores, threshold=[5]), by_rate(0.4)).flagged.tolist() == [1, 3]  # 2 of 5
    assert identify(run(scores), "rate:0.5").flagged.tolist() == [5, 1, 3]


def test_equal_scores_are_flagged_together_if_that_comes_nearer_to_the_rate(run):
    assert identify(run([1, 1, 1, 2]), by_rate(0.5)).flagged.tolist() == [0, 1, 2]
    assert identify(run([1, 1, 1, 2]), by_rate(0.25)).flagged.tolist() == []
    never_forgotten = run([0] * 95 + [-1] * 5)
    assert identify(never_forgotten, by_rate(0.1)).flagged.tolist() == [95, 96, 97, 98, 99]


def test_a_rate_of_zero_flags_nobody_and_still_orders_the_samples(run):
    verdicts = identify(run([3, 1, 2]), by_rate(0))
    assert not verdicts.is_flagged.any()
    assert verdicts.order.tolist() == [1, 2, 0]


def test_class_rates_rank_within_each_class(run):
    labels = np.repeat([0, 1], 10)
    scores = np.arange(20.0)  # all of class 0 lies below class 1
    exact = identify(run(scores, labels=labels), by_class_rates([0.1, 0.4], slack=0))
    assert np.flatnonzero(exact.is_flagged).tolist() == [0, 10, 11, 12, 13]
    # Gui et al. keep max(1 - 1.2 rate, 0.8 (1 - rate)): of rates .5 and .8, .4 and .16
    generous = identify(run(scores, labels=labels), by_class_rates([0.5, 0.8]))
    assert np.bincount(labels[generous.is_kept]).tolist() == [4, 2]


def test_a_class_without_samples_has_no_say_in_class_rates(run):
    verdicts = identify(run([1, 2, 3, 4], labels=np.array([0, 0, 2, 2])), by_class_rates([0.5, 0.5, 0], slack=0))
    assert verdicts.flagged.tolist() == [0]


def test_rates_that_cannot_be_are_errors(run):
    with pytest.raises(IdentifyError, match="the rate is 40, expected a share from 0 to less than 1"):
        by_rate(40)
    with pytest.raises(IdentifyError, match="the rate is -1"):
        by_class_rates([0.1, -1])
    with pytest.raises(IdentifyError, match="expected a share behind the colon"):
        choose("rate:much")
    with pytest.raises(IdentifyError, match="2 class rates, but a label 2"):
        identify(run([1, 2], labels=np.array([0, 2])), by_class_rates([0.1, 0.1]))
    with pytest.raises(IdentifyError, match="has no labels"):
        identify(run([1, 2]), by_class_rates([0.1]))
