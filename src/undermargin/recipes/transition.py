"""Estimates the transition matrix of label noise from nearest neighbors (Zhu et al. 2021: high-order consensuses).

A sample and its two nearest neighbors mostly share one true class, so their labels are three independent draws from one
row of the transition matrix. The frequencies of labels, pairs and triples therefore determine the matrix.
"""

import torch
from torch import Tensor

STEPS, LEARNING_RATE = 400, 0.1  # of Adam; the settings of SimiFeat's authors
MAX_TRIPLES = 35_000  # the most that the authors draw at a time
MAX_PRODUCTS = 2**23  # limit on classes x triples held in memory: many classes mean fewer triples


def transition(triples: Tensor, num_classes: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The transition matrix (true classes, labels) and the share of each true class (classes,), estimated from the
    labels of samples and their two nearest neighbors (samples, 3)."""
    most = min(MAX_TRIPLES, MAX_PRODUCTS // num_classes)
    if len(triples) > most:
        triples = triples[torch.randperm(len(triples), generator=generator)[:most]]
    seen = [_counted(triples[:, : order + 1].cpu()) for order in range(3)]
    rows = (5 * torch.eye(num_classes, dtype=torch.float64) - 1).requires_grad_()
    shares = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([rows, shares], lr=LEARNING_RATE)
    least, best = torch.inf, (rows, shares)
    for _ in range(STEPS):
        loss = torch.stack([disagreement(rows.softmax(1), shares.softmax(0), *counts) for counts in seen]).sum()
        if loss.item() < least:
            least, best = loss.item(), (rows.detach().clone(), shares.detach().clone())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return best[0].softmax(1).detach(), best[1].softmax(0).detach()


def disagreement(matrix: Tensor, shares: Tensor, groups: Tensor, frequencies: Tensor) -> Tensor:
    """Euclidean distance between the expected and the observed frequencies of groups of labels.

    `groups` (groups, order) are the observed ones, `frequencies` (groups,) their frequencies. Groups that were not
    observed count as well but need not be enumerated: the norm of the expected frequencies is a sum over pairs of true
    classes.
    """
    order = groups.shape[1]
    expected = matrix[:, groups].prod(2).T @ shares  # (groups,)
    length = shares @ (matrix @ matrix.T) ** order @ shares
    square = length - 2 * expected @ frequencies + frequencies @ frequencies
    return square.clamp(min=1e-16).sqrt()


def _counted(groups: Tensor) -> tuple[Tensor, Tensor]:
    distinct, counts = torch.unique(groups, dim=0, return_counts=True)
    return distinct, counts.double() / len(groups)
