"""The paper's BMM and GMM: last loss x beta or Gaussian mixture, flagged where the posterior is more than one half."""

import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

from undermargin import Run, identify
from undermargin.cutoffs import CUTOFFS, find
from undermargin.cutoffs.mixtures import (
    beta_posterior,
    boundary_between_means,
    gaussian_boundary,
    gaussian_posterior,
)


def last_losses(rng, num_clean=6000, num_wrong=4000):
    """Small for what was learned, spread out for what was not."""
    return np.concatenate([rng.exponential(0.3, num_clean), rng.gamma(6, 0.6, num_wrong)])


def gaussian_reference(losses):
    """sklearn's posterior of the component of large losses, after scaling from smallest to largest."""
    scaled = ((losses - losses.min()) / (losses.max() - losses.min()))[:, None]
    mixture = GaussianMixture(2, max_iter=500, tol=1e-6, reg_covar=5e-4, random_state=3).fit(scaled)
    return mixture.predict_proba(scaled)[:, mixture.means_.argmax()]


def beta_reference(losses):
    """Arazo et al.: ten steps of EM, each beta by its moments, with scipy's densities."""
    low, high = np.percentile(losses, 5), np.percentile(losses, 95)

    def scale(values):
        values = (values - low - 1e-5) / (high - low - 1e-5 + 1e-6)
        return np.where(values >= 1, 0.999, np.where(values <= 0, 0.001, values))

    def densities(values):
        return np.array([share * stats.beta(a, b).pdf(values) for share, (a, b) in zip(pi, parameters, strict=True)])

    fitted = scale(losses[(losses >= low) & (losses <= high)])
    pi, parameters = [0.5, 0.5], [(1, 2), (2, 1)]
    for _ in range(10):
        shares = densities(fitted)
        shares = shares / shares.sum(0)
        parameters = []
        for share in shares:
            mean = np.average(fitted, weights=share)
            size = mean * (1 - mean) / np.average((fitted - mean) ** 2, weights=share) - 1
            parameters.append((mean * size, (1 - mean) * size))
        pi = shares.mean(1)
    both = densities(scale(losses))
    posterior = both[1] / both.sum(0)
    # their correction: beyond the loss where the posterior is largest, it stays as large
    return np.where(losses > losses[posterior.argmax()], posterior.max(), posterior)


@pytest.mark.parametrize(("cutoff", "reference"), [("gaussian", gaussian_reference), ("beta", beta_reference)])
@pytest.mark.parametrize("num_wrong", [600, 4000, 9000])
def test_flagged_is_whose_last_loss_belongs_to_the_large_component_with_more_than_one_half(
    cutoff, reference, num_wrong, rng
):
    losses = last_losses(rng, num_wrong=num_wrong)
    verdicts = identify(Run(-losses, score="last_loss"), cutoff)
    expected = reference(losses) > 0.5
    # a loss smaller than usual is never suspicious, even where the wide component is the likelier one
    expected &= losses > np.median(losses[~expected])
    assert (verdicts.is_flagged != expected).mean() < 0.002
    assert 0.02 < expected.mean() < 0.98


@pytest.mark.parametrize(
    ("posterior", "reference"), [(gaussian_posterior, gaussian_reference), (beta_posterior, beta_reference)]
)
def test_the_posterior_is_the_references_between_the_components(posterior, reference, rng):
    losses = last_losses(rng)
    middle = (losses > 0.5) & (losses < 3)
    np.testing.assert_allclose(posterior(losses).of(losses)[middle], reference(losses)[middle], atol=0.02)


@pytest.mark.parametrize("posterior", [gaussian_posterior, beta_posterior])
def test_a_larger_loss_is_never_less_suspicious(posterior, rng):
    for losses in (last_losses(rng), rng.exponential(1, 500), rng.standard_t(2, 500), rng.beta(0.3, 0.3, 500)):
        shares = posterior(losses).of(np.linspace(losses.min() - 1, losses.max() + 1, 999))
        assert np.isfinite(shares).all()
        assert (np.diff(shares) >= 0).all()
        assert 0 <= shares.min() <= shares.max() <= 1


@pytest.mark.parametrize("posterior", [gaussian_posterior, beta_posterior])
def test_equal_losses_are_not_suspicious(posterior):
    for losses in (np.full(10, 2.0), np.array([3.0]), np.r_[np.zeros(98), 1.0, 1.0]):
        assert np.isfinite(posterior(losses).of(losses)).all()
    assert posterior(np.full(10, 2.0)).of(np.array([2.0]))[0] == 0
    assert posterior(np.full(10, 2.0)).boundary() == np.inf


def test_a_lower_gaussian_that_is_outweighed_at_its_own_mean_flags_its_tail_alone(rng):
    """A narrow peak within a wide, slightly lower component: half of the samples lie below the wide one's mean."""
    scores = np.concatenate([rng.normal(0, 0.3, 8000), rng.normal(-0.2, 3, 2000)])
    flagged = scores <= gaussian_boundary(Run(scores))
    assert 0.05 < flagged.mean() < 0.12
    assert (gaussian_reference(-scores)[flagged] > 0.49).all()
    assert (scores <= boundary_between_means(Run(scores))).mean() > 0.2  # what `auto` was settled with


def test_auto_is_what_it_was(rng):
    """Between the means, with the same numbers as ever: stored verdicts must not change under people's feet."""
    scores = np.concatenate([rng.normal(-3, 1, 300), rng.normal(3, 1, 700)])
    run = Run(scores, is_threshold=np.arange(1000) % 10 == 0, labels=np.arange(1000) % 4)
    assert find(CUTOFFS["auto"], run).value == pytest.approx(AUTO, abs=1e-12)


AUTO = -0.021261496717363215
