"""Cutoffs without threshold samples: fit two components to the scores, cut where they are equally likely."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from undermargin.tracking.run import Run

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

Values = npt.NDArray[np.float64]

STEPS = 10  # of EM for the beta mixture, as its authors do
GRID = 4096  # points on which a boundary is looked for
MAX_FITTED = 100_000  # scores; more would not move the boundary
EDGE = 1e-3  # a beta's density may be infinite at 0 and 1: the authors stay this far away


@dataclass(frozen=True)
class Posterior:
    """The probability that a loss belongs to the component of high losses; it never falls as the loss rises."""

    lowest: float
    highest: float
    shares: Values  # (GRID,) at even steps of the loss from lowest to highest; beyond them as at the ends

    def of(self, losses: Values) -> Values:
        """Of each loss: (samples,)."""
        return np.interp(losses, np.linspace(self.lowest, self.highest, GRID), self.shares)

    def boundary(self) -> float:
        """The loss above which the probability is more than one half; infinite if it never is."""
        above = np.flatnonzero(self.shares > 0.5)
        if not len(above):
            return np.inf
        after = above[0]
        grid = np.linspace(self.lowest, self.highest, GRID)
        if after == 0:
            return float(grid[0])
        return float(np.interp(0.5, self.shares[after - 1 : after + 1], grid[after - 1 : after + 1]))


def gaussian_boundary(run: Run) -> float:
    """The score at and below which a sample belongs to the lower one of two fitted Gaussians with probability 1/2."""
    return -gaussian_posterior(-_judged(run)).boundary()


def beta_boundary(run: Run) -> float:
    """The same with two beta distributions, fitted by EM with the method of moments (Arazo et al. 2019)."""
    return -beta_posterior(-_judged(run)).boundary()


def gaussian_posterior(losses: Values) -> Posterior:
    """Two Gaussians fitted to losses between their smallest and their largest (Li et al. 2020)."""
    lowest, highest = float(losses.min()), float(losses.max())
    if lowest == highest:
        return Posterior(lowest, highest, np.zeros(GRID))
    mixture = _fit_gaussians((losses - lowest) / (highest - lowest))
    means = mixture.means_[:, 0]
    grid = np.linspace(0, 1, GRID)
    shares = mixture.predict_proba(grid[:, None])[:, int(means.argmax())]
    return Posterior(lowest, highest, _rising(grid, shares, means.min()))


def beta_posterior(losses: Values) -> Posterior:
    """Two betas fitted to losses between their 5th and their 95th percentile (Arazo et al. 2019)."""
    low, high = np.percentile(losses, [5, 95])
    start, width = low + 1e-5, high - low - 1e-5 + 1e-6  # the authors' margins
    if width <= 1e-6:
        return Posterior(float(low), float(high), np.zeros(GRID))
    scaled = (losses[(losses >= low) & (losses <= high)] - start) / width
    if len(scaled) < 2:  # nothing to fit two components to
        return Posterior(float(low), float(high), np.zeros(GRID))
    scaled = np.where(scaled >= 1, 1 - EDGE, np.where(scaled <= 0, EDGE, scaled))
    weights, alphas, betas = fit_betas(scaled)
    means = alphas / (alphas + betas)
    grid = np.linspace(EDGE, 1 - EDGE, GRID)
    high_component = int(means.argmax())  # the authors assume that it is the second
    log = _log_beta_densities(grid, weights, alphas, betas)
    shares = 1 / (1 + np.exp((log[1 - high_component] - log[high_component]).clip(-500, 500)))
    return Posterior(float(start + EDGE * width), float(start + (1 - EDGE) * width), _rising(grid, shares, means.min()))


def boundary_between_means(run: Run) -> float:
    """The boundary of two Gaussians, looked for between their means alone: what `auto` was settled with.

    Where the lower one is outweighed even at its own mean, this is that mean.
    """
    scores = _judged(run)
    lowest, highest = scores.min(), scores.max()
    if len(np.unique(scores)) < 2:
        return -np.inf
    mixture = _fit_gaussians((scores - lowest) / (highest - lowest))
    low, high = np.sort(mixture.means_[:, 0])
    suspicious = int(mixture.means_[:, 0].argmin())
    grid = np.linspace(low, high, GRID)
    below = np.flatnonzero(mixture.predict_proba(grid[:, None])[:, suspicious] < 0.5)
    boundary = grid[max(below[0] - 1, 0)] if len(below) else grid[-1]
    return float(lowest + boundary * (highest - lowest))


def _fit_gaussians(values: Values) -> "GaussianMixture":
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(2, max_iter=100, tol=1e-4, reg_covar=5e-4, random_state=0).fit(values[:, None])


def _rising(grid: Values, shares: Values, low_mean: float) -> Values:
    """Shares that never fall: a loss below the mean of the low component is not suspicious for being rare, nor is a
    loss so large that neither component has it any less suspicious."""
    middle = min(int(np.searchsorted(grid, low_mean)), len(grid) - 1)
    return np.maximum.accumulate(np.concatenate([shares[:middle].clip(max=shares[middle]), shares[middle:]]))


def fit_betas(values: Values, *, steps: int = STEPS) -> tuple[Values, Values, Values]:
    """Weights, alphas and betas (2,) of two beta distributions fitted to values in [0, 1]."""
    values = values.clip(1e-4, 1 - 1e-4)
    weights, alphas, betas = np.full(2, 0.5), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    for _ in range(steps):
        density = np.exp(_log_beta_densities(values, weights, alphas, betas)).clip(1e-12)
        shares = density / density.sum(0)
        total = shares.sum(1)
        means = shares @ values / total
        variances = (shares * (values - means[:, None]) ** 2).sum(1) / total
        # a component of no width, or wider than any beta, has no method-of-moments fit: keep it finite
        alphas = (means * (means * (1 - means) / variances.clip(1e-6) - 1)).clip(1e-3)
        betas = (alphas * (1 - means) / means).clip(1e-3)
        weights = total / total.sum()
    return weights, alphas, betas


def _log_beta_densities(values: Values, weights: Values, alphas: Values, betas: Values) -> Values:
    """Of both components, with their weights: (2, values)."""
    from scipy.special import betaln

    x = values[None, :]
    a, b = alphas[:, None], betas[:, None]
    weighted = np.log(weights.clip(1e-300))[:, None]
    return np.asarray(weighted + (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))


def _judged(run: Run) -> Values:
    scores = np.asarray(run.scores[run.judged], dtype=np.float64)
    if len(scores) > MAX_FITTED:
        scores = np.random.default_rng(0).choice(scores, MAX_FITTED, replace=False)
    return scores
