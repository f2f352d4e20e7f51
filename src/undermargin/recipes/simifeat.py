"""SimiFeat: a label that a sample's neighbours do not share is suspicious (Zhu et al. 2022)."""

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
from undermargin.recipes.transition import transition
from undermargin.tracking.run import Run
from undermargin.verdicts.identify import identify

COMPARED_TOGETHER = 2**24  # pairs of samples: 64 MB, however many samples there are
LARGEST_RATE = 0.95  # of a class that is flagged, as the authors have it
OUTVOTED = Cutoff(lambda run: 0.0, "another label has more of the neighbours", "Zhu et al. 2022", is_strict=True)  # noqa: ARG005


@dataclass(frozen=True)
class SimiFeat:
    """How many neighbours are asked, and what is made of their answers.

    `vote` flags a label that has not the most of them; `rank` flags within every class as many as are estimated to be
    wrong, those first whose label has least of them.
    """

    variant: Literal["rank", "vote"] = "rank"
    num_neighbours: int = 10  # the sample itself among them
    warm_up: float = 1 / 3  # of the epochs, where features must be learned first: a network that has been trained to
    # its end knows wrong labels by heart; the authors take those of a frozen encoder

    def fit(self, lesson: Lesson) -> Fitted:
        """Verdicts from features, and one training without the flagged."""
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
        """Vectors as they are, which some encoder made; else what a short training makes of the samples."""
        inputs = lesson.plan.inputs
        if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].ndim == 2 and inputs[0].is_floating_point():
            return inputs[0][torch.from_numpy(lesson.rows)]
        epochs = max(1, round(self.warm_up * lesson.budget.epochs))
        training, _ = lesson.shortened(epochs).train("warm_up")
        return training.features(lesson.rows)


def nearest(features: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Cosine similarities and positions of the nearest samples, itself first with 1: (samples, number) twice."""
    unit = F.normalize(features.float(), dim=1)
    similarities, positions = [], []
    everyone = torch.arange(len(unit), device=unit.device)
    for rows in torch.split(everyone, max(1, COMPARED_TOGETHER // len(unit))):
        block = unit[rows] @ unit.T
        block[torch.arange(len(rows)), rows] = torch.inf  # first, even among copies of itself
        values, where = block.topk(number, 1)
        similarities.append(values.nan_to_num(posinf=1.0))
        positions.append(where)
    return torch.cat(similarities), torch.cat(positions)


def label_votes(similarities: Tensor, answers: Tensor, num_classes: int) -> Tensor:
    """How much of a sample's neighbourhood wears each label, as vectors of length 1: (samples, classes).

    A neighbour counts by its similarity, and the sample itself as one would that is as much nearer than the first
    neighbour as that one is nearer than the second.
    """
    weights = similarities.clone()
    weights[:, 0] = 2 * similarities[:, 1] - similarities[:, 2]
    votes = torch.zeros(len(answers), num_classes).scatter_add_(1, answers, weights.clamp(min=0))
    return F.normalize(votes, dim=1)


def against_rival(votes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The votes for a sample's own label, and for the strongest other one: (samples,) twice."""
    own = votes.gather(1, labels[:, None])[:, 0]
    return own, votes.scatter(1, labels[:, None], -1.0).amax(1)


def wrong_shares(triples: Tensor, num_classes: int, *, seed: int) -> npt.NDArray[np.float64]:
    """What share of each label's samples is wrong, from the labels of samples and two neighbours: (classes,).

    Where the estimate is 0 nobody is flagged; the authors flag 5 % even so.
    """
    matrix, shares = transition(triples, num_classes, generator=torch.Generator().manual_seed(seed))
    frequencies = torch.bincount(triples[:, 0], minlength=num_classes) / len(triples)
    right = matrix.diagonal() * shares / frequencies.clamp(min=1e-12)
    return (1 - right).clamp(0, LARGEST_RATE).numpy()
