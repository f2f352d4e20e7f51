"""How labels are mistaken for each other, from neighbours alone (Zhu et al. 2021: high-order consensuses).

A sample and its two nearest neighbours mostly share one true class, so that their labels are three independent draws
from one row of the transition matrix: how often each label, pair and triple is seen tells that matrix.
"""

import torch
from torch import Tensor

STEPS, LEARNING_RATE = 400, 0.1  # of Adam, as SimiFeat's authors do
MAX_TRIPLES = 35_000  # the most that the authors draw at a time
MAX_PRODUCTS = 2**23  # numbers that are held at once, a true class and a triple each: fewer triples of many classes


def transition(triples: Tensor, num_classes: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The transition matrix (true classes, labels) and the share of each true class (classes,), from the labels of
    samples and their two nearest neighbours: (samples, 3)."""
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
    """Length of the difference between how often groups of labels should be seen and are: a number.

    `groups` (groups, order) are those that were seen, `frequencies` (groups,) how often. All others count too, but are
    never written out: the length of what should be seen is a sum over pairs of true classes.
    """
    order = groups.shape[1]
    expected = matrix[:, groups].prod(2).T @ shares  # (groups,)
    length = shares @ (matrix @ matrix.T) ** order @ shares
    square = length - 2 * expected @ frequencies + frequencies @ frequencies
    return square.clamp(min=1e-16).sqrt()


def _counted(groups: Tensor) -> tuple[Tensor, Tensor]:
    distinct, counts = torch.unique(groups, dim=0, return_counts=True)
    return distinct, counts.double() / len(groups)
