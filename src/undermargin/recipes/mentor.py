"""The mentor of MentorNet: a small network that weights samples by their losses, and its training data."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

NUM_PERCENTS = 100  # the mentor measures time in percent of the training
BATCH_SIZE = 256  # the authors use 32 and more steps, which takes longer and fits no better
LEARNING_RATE = 0.1
DECAY, NUM_DECAYS = 0.9, 30  # of the learning rate: the authors decay every 1,000 of 30,000 steps
GRADIENT_NORM = 5.0


class Mentor(nn.Module):
    """Maps losses, their difference to a moving percentile, and the percentage of training completed, to weights.

    The first layer is a bidirectional LSTM with one unit per direction. It takes one step from a zero state and outputs
    its cell states, so only the input gates and candidates are needed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Linear(2, 2)  # one output per direction
        self.candidates = nn.Linear(2, 2)
        self.labels = nn.Embedding(2, 2)  # the authors only ever pass label 0, so this is a learned constant
        self.percents = nn.Embedding(NUM_PERCENTS, 5)
        self.hidden = nn.Linear(9, 20)
        self.output = nn.Linear(20, 1)
        for parameter in self.parameters():
            nn.init.normal_(parameter)
        self.percents.requires_grad_(False)

    def forward(self, losses: Tensor, differences: Tensor, percents: Tensor) -> Tensor:
        """Logits of the weights: (batch,), (batch,), (batch,) -> (batch,)."""
        shown = torch.stack([losses, differences], 1)
        cells = self.gates(shown).sigmoid() * self.candidates(shown).tanh()
        features = torch.cat([self.labels(torch.zeros_like(percents)), self.percents(percents), cells], 1)
        weights: Tensor = self.output(self.hidden(features).tanh())[:, 0]
        return weights

    @torch.no_grad()
    def weigh(self, losses: Tensor, average: Tensor, percent: int) -> Tensor:
        """Weights from 0 to 1, for losses whose moving percentile is `average`: (batch,) -> (batch,)."""
        percents = torch.full(losses.shape, percent, dtype=torch.long, device=losses.device)
        weights: Tensor = self(losses, losses - average, percents).sigmoid()
        return weights


@dataclass(frozen=True)
class Points:
    """Training data for a mentor: its inputs and the weights it should return; each (points,)."""

    losses: Tensor
    differences: Tensor
    percents: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.weights)

    def at(self, places: Tensor) -> "Points":
        """The points at these positions."""
        return Points(self.losses[places], self.differences[places], self.percents[places], self.weights[places])


def curriculum(differences: Tensor, percents: Tensor) -> Tensor:
    """The predefined weights: 1 for all at first, then 1 below the percentile only, finally decreasing above it."""
    is_below = (differences <= 0).float()
    linear = (1 - differences).clamp(0, 1)
    later = torch.where(percents < 90, is_below, linear)
    return torch.where(percents <= 18, torch.ones_like(later), later)


def predefined(num_points: int, seed: int) -> Points:
    """Points drawn from the authors' grid without replacement, with the predefined weights."""
    losses = torch.cat([torch.arange(100) / 10, torch.arange(10, 30).float()])
    differences = torch.arange(-50, 50) / 10
    size = len(losses) * len(differences) * NUM_PERCENTS
    drawn = torch.randperm(size, generator=torch.Generator().manual_seed(seed))[:num_points]
    percents = drawn % NUM_PERCENTS
    differences = differences[drawn // NUM_PERCENTS % len(differences)]
    losses = losses[drawn // (NUM_PERCENTS * 100)]
    return Points(losses, differences, percents, curriculum(differences, percents))


def teach(points: Points, num_steps: int, seed: int) -> Mentor:
    """A mentor trained on these points, with cross-entropy if all weights are 0 or 1, else with squared error."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mentor = Mentor()
    learned = [parameter for parameter in mentor.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=LEARNING_RATE, fused=True)
    is_binary = bool(((points.weights == 0) | (points.weights == 1)).all())
    for step in range(num_steps):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * DECAY ** (NUM_DECAYS * step // num_steps)
        batch = points.at(torch.randint(len(points), (BATCH_SIZE,), generator=generator))
        logits = mentor(batch.losses, batch.differences, batch.percents)
        if is_binary:
            loss = F.binary_cross_entropy_with_logits(logits, batch.weights)
        else:
            loss = F.mse_loss(logits.sigmoid(), batch.weights)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learned, GRADIENT_NORM)
        optimizer.step()
    return mentor.requires_grad_(False)
