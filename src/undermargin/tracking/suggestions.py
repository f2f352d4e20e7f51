"""Suggested labels: for each sample, the class that most often had a larger logit than the label."""

import torch
from torch import Tensor

SLOTS = 4  # classes kept per sample, independent of the number of classes


class Suggestions:
    """Votes for rivals of the label, one per epoch, in bounded memory (frequent items of Misra and Gries).

    Each sample keeps at most four classes and their counts. A class with more than a fifth of the votes is always
    among them; its count is too low by at most a fifth of the votes.
    """

    def __init__(self, num_samples: int, num_spare: int, num_classes: int, device: torch.device) -> None:
        self.num_classes = num_classes
        self.tensors = {
            # the strongest rival at the last observation in the open epoch; -1: the label had the largest logit
            "rival": torch.full((num_samples + num_spare,), -1, dtype=torch.int32, device=device),
            "classes": torch.full((num_samples, SLOTS), -1, dtype=torch.int32, device=device),
            "votes": torch.zeros(num_samples, SLOTS, dtype=torch.int16, device=device),
        }

    def update(self, rows: Tensor, others: Tensor, assigned: Tensor) -> None:
        """Store which class beats the label: rows (batch,), others (batch, outputs), logit of the label (batch, 1).

        The extra label is never suggested, so only the outputs of real classes are compared.
        """
        strongest = others[:, : self.num_classes].max(1)
        rival = strongest.indices.to(torch.int32).where(strongest.values > assigned[:, 0], -1)
        self.tensors["rival"].index_copy_(0, rows, rival)

    def end_epoch(self) -> None:
        """Count one vote for the rival of each sample in this epoch."""
        classes, votes = self.tensors["classes"], self.tensors["votes"]
        rival = self.tensors["rival"][: len(classes)]
        _vote(classes, votes, rival, (rival >= 0).to(torch.int16))

    def drop_epoch(self) -> None:
        """Forget the rivals of the open epoch."""
        self.tensors["rival"].fill_(-1)

    def follow(self, later: "Suggestions", seen: Tensor) -> None:
        """Add the votes of a later training; `seen` (rows,) marks what it observed in the open epoch."""
        for slot in range(SLOTS):
            votes = later.tensors["votes"][:, slot]
            _vote(self.tensors["classes"], self.tensors["votes"], later.tensors["classes"][:, slot], votes)
        self.tensors["rival"].copy_(later.tensors["rival"].where(seen, self.tensors["rival"]))

    def best(self, epochs: Tensor) -> tuple[Tensor, Tensor]:
        """The class with most votes (-1: none beat the label), and its share of the epochs: (samples,) each."""
        most, slot = self.tensors["votes"].max(1)
        best = self.tensors["classes"].gather(1, slot[:, None])[:, 0].where(most > 0, -1)
        return best, most / epochs.clamp(min=1)


def _vote(classes: Tensor, votes: Tensor, rival: Tensor, weight: Tensor) -> None:
    """Add `weight` (samples,) votes for `rival` (samples,) to the slots (samples, slots), in place."""
    weight = weight[:, None]
    known = (classes == rival[:, None]) & (votes > 0)
    votes += weight * known
    weight = weight * ~known.any(1, keepdim=True)
    # a class without a slot takes an empty one; if there is none, it and every slot lose the same number of votes
    lost = torch.minimum(votes.amin(1, keepdim=True), weight)
    votes -= lost
    weight = weight - lost
    empty = votes.argmin(1, keepdim=True)
    taken = weight > 0
    classes.scatter_(1, empty, rival[:, None].where(taken, classes.gather(1, empty)))
    votes.scatter_(1, empty, weight.where(taken, votes.gather(1, empty)))
