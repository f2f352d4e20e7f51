"""SimiFeat: a label is suspicious if the nearest neighbors of the sample do not share it (Zhu et al. 2022)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.cutoffs import Cutoff, by_class_rates
from undermargin.recipes.fitted import Fitted
from undermargin.recipes.lesson import Lesson, trained_without
from undermargin.tracking.run import Run
from undermargin.verdicts.identify import identify

COMPARED_TOGETHER = 2**24  # pairs of samples per block: 64 MB for any number of samples
LARGEST_RATE = 0.95  # at most this share of a class is flagged, as in the authors' code
OUTVOTED = Cutoff(lambda run: 0.0, "another label has more neighbors", "Zhu et al. 2022", is_strict=True)  # noqa: ARG005
STEPS, LEARNING_RATE = 400, 0.1  # of Adam; the settings of SimiFeat's authors
MAX_TRIPLES = 35_000  # the most that the authors draw at a time
MAX_PRODUCTS = 2**23  # limit on classes x triples held in memory: many classes mean fewer triples


@dataclass(frozen=True)
class SimiFeat:
    """The number of neighbors, and how their labels are used.

    `vote` flags a sample if another label has more votes among its neighbors. `rank` estimates how many labels of each
    class are wrong and flags that many, starting with those that have the fewest votes.
    """

    variant: Literal["rank", "vote"] = "rank"
    num_neighbours: int = 10  # including the sample itself
    # share of the epochs, if features have to be learned first: a fully trained network has memorized wrong labels.
    # The authors use the features of a frozen encoder
    warm_up: float = 1 / 3

    def fit(self, lesson: Lesson) -> Fitted:
        """Judge samples by their features, then train without the flagged samples."""
        features, labels = self.features(lesson), torch.from_numpy(lesson.labels[lesson.rows])
        similarities, neighbours = nearest(features, min(self.num_neighbours, len(labels)))
        answers = labels[neighbours.cpu()]
        votes = label_votes(similarities.cpu(), answers, lesson.num_classes)
        own, rival = against_rival(votes, labels)
        if self.variant == "vote":
            scores, cutoff = own - rival, OUTVOTED
        else:
            rates = wrong_shares(answers[:, :3], lesson.num_classes, seed=lesson.seed)
            scores, cutoff = own, by_class_rates(rates.tolist(), slack=0)
        name = "simifeat" if self.variant == "rank" else "simifeat_vote"
        run = Run(scores=scores.numpy(), labels=labels.numpy(), score=name)
        return trained_without(lesson, name, identify(run, cutoff))

    def features(self, lesson: Lesson) -> Tensor:
        """The inputs if they are vectors, such as embeddings; otherwise the features of a short training."""
        inputs = lesson.plan.inputs
        if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].ndim == 2 and inputs[0].is_floating_point():
            return inputs[0][torch.from_numpy(lesson.rows)]
        epochs = max(1, round(self.warm_up * lesson.budget.epochs))
        training, _ = lesson.shortened(epochs).train("warm_up")
        return training.features(lesson.rows)


def nearest(features: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Cosine similarities and positions of the nearest samples, the sample itself first: (samples, number) each."""
    unit = F.normalize(features.float(), dim=1)
    similarities, positions = [], []
    everyone = torch.arange(len(unit), device=unit.device)
    for rows in torch.split(everyone, max(1, COMPARED_TOGETHER // len(unit))):
        block = unit[rows] @ unit.T
        block[torch.arange(len(rows)), rows] = torch.inf  # puts the sample first even if it has duplicates
        values, where = block.topk(number, 1)
        similarities.append(values.nan_to_num(posinf=1.0))
        positions.append(where)
    return torch.cat(similarities), torch.cat(positions)


def label_votes(similarities: Tensor, answers: Tensor, num_classes: int) -> Tensor:
    """Votes of the neighbors for each label, normalized to length 1: (samples, classes).

    Neighbors are weighted by their similarity. The weight of the sample itself is extrapolated: it exceeds that of the
    first neighbor by as much as the first exceeds the second.
    """
    weights = similarities.clone()
    weights[:, 0] = 2 * similarities[:, 1] - similarities[:, 2]
    votes = torch.zeros(len(answers), num_classes).scatter_add_(1, answers, weights.clamp(min=0))
    return F.normalize(votes, dim=1)


def against_rival(votes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The votes for the sample's own label and for the strongest other label: (samples,) each."""
    own = votes.gather(1, labels[:, None])[:, 0]
    return own, votes.scatter(1, labels[:, None], -1.0).amax(1)


def wrong_shares(triples: Tensor, num_classes: int, *, seed: int) -> npt.NDArray[np.float64]:
    """Estimated share of wrong labels per class, from the labels of samples and their two neighbors: (classes,).

    If the estimate is 0, no sample of the class is flagged; the authors flag 5 % even then.
    """
    matrix, shares = transition(triples, num_classes, generator=torch.Generator().manual_seed(seed))
    frequencies = torch.bincount(triples[:, 0], minlength=num_classes) / len(triples)
    right = matrix.diagonal() * shares / frequencies.clamp(min=1e-12)
    return (1 - right).clamp(0, LARGEST_RATE).numpy()


def transition(triples: Tensor, num_classes: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The transition matrix (true classes, labels) and the share of each true class (classes,), estimated from the
    labels of samples and their two nearest neighbors (samples, 3) (Zhu et al. 2021: high-order consensuses).

    A sample and its two nearest neighbors mostly share one true class, so their labels are three independent draws from
    one row of the matrix. The frequencies of labels, pairs and triples therefore determine the matrix.
    """
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
