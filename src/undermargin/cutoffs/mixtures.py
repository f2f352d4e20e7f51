"""Cutoffs without threshold samples: fit two components to the scores, cut where they are equally likely."""

import numpy as np
import numpy.typing as npt

from undermargin.run import Run

Values = npt.NDArray[np.float64]

STEPS = 10  # of EM for the beta mixture, as its authors do
GRID = 4096  # points between the two means on which the boundary is looked for
MAX_FITTED = 100_000  # scores; more would not move the boundary


def gaussian_boundary(run: Run) -> float:
    """Between two fitted Gaussians, the largest score that belongs to the lower one with probability >= 1/2."""
    from sklearn.mixture import GaussianMixture

    scores = _judged(run)
    lowest, highest = scores.min(), scores.max()
    if len(np.unique(scores)) < 2:
        return -np.inf
    scaled = (scores - lowest) / (highest - lowest)
    mixture = GaussianMixture(2, max_iter=100, tol=1e-4, reg_covar=5e-4, random_state=0).fit(scaled[:, None])
    low, high = np.sort(mixture.means_[:, 0])
    suspicious = int(mixture.means_[:, 0].argmin())
    grid = np.linspace(low, high, GRID)
    boundary = _boundary(grid, mixture.predict_proba(grid[:, None])[:, suspicious])
    return float(lowest + boundary * (highest - lowest))


def beta_boundary(run: Run) -> float:
    """The same with two beta distributions, fitted by EM with the method of moments (Arazo et al. 2019)."""
    scores = _judged(run)
    # the authors fit losses, high = suspicious, between their 5th and 95th percentile
    low, high = np.percentile(-scores, [5, 95])
    if high <= low:
        return -np.inf
    losses = -scores
    fitted = losses[(losses >= low) & (losses <= high)]
    weights, alphas, betas = fit_betas((fitted - low) / (high - low))
    means = alphas / (alphas + betas)
    grid = np.linspace(max(means.min(), 1e-4), min(means.max(), 1 - 1e-4), GRID)
    density = _beta_densities(grid, weights, alphas, betas)
    suspicious = density[int(means.argmax())] / density.sum(0)
    # the lowest suspicious loss is the highest suspicious score
    boundary = -_boundary(-grid[::-1], suspicious[::-1])
    return float(-(low + boundary * (high - low)))


def fit_betas(values: Values, *, steps: int = STEPS) -> tuple[Values, Values, Values]:
    """Weights, alphas and betas (2,) of two beta distributions fitted to values in [0, 1]."""
    values = values.clip(1e-4, 1 - 1e-4)
    weights, alphas, betas = np.full(2, 0.5), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    for _ in range(steps):
        density = _beta_densities(values, weights, alphas, betas).clip(1e-12)
        shares = density / density.sum(0)
        total = shares.sum(1)
        means = shares @ values / total
        variances = (shares * (values - means[:, None]) ** 2).sum(1) / total
        # a component of no width, or wider than any beta, has no method-of-moments fit: keep it finite
        alphas = (means * (means * (1 - means) / variances.clip(1e-6) - 1)).clip(1e-3)
        betas = (alphas * (1 - means) / means).clip(1e-3)
        weights = total / total.sum()
    return weights, alphas, betas


def _beta_densities(values: Values, weights: Values, alphas: Values, betas: Values) -> Values:
    from scipy.special import betaln

    x = values[None, :]
    a, b = alphas[:, None], betas[:, None]
    log = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b)
    return np.asarray(weights[:, None] * np.exp(log))


def _boundary(grid: Values, suspicious: Values) -> float:
    """The last grid point before the suspicious component falls below one half."""
    below = np.flatnonzero(suspicious < 0.5)
    return float(grid[max(below[0] - 1, 0)] if len(below) else grid[-1])


def _judged(run: Run) -> Values:
    scores = np.asarray(run.scores[run.judged], dtype=np.float64)
    if len(scores) > MAX_FITTED:
        scores = np.random.default_rng(0).choice(scores, MAX_FITTED, replace=False)
    return scores
