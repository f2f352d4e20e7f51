"""Networks for vectors and tables: one hidden layer with dropout."""

import torch
from torch import Tensor, nn

HIDDEN = 256
DROPOUT = 0.5


def head(num_inputs: int, num_outputs: int) -> nn.Sequential:
    """A hidden layer and an output layer, for vectors (batch, inputs)."""
    return nn.Sequential(
        nn.Linear(num_inputs, HIDDEN),
        nn.BatchNorm1d(HIDDEN),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(HIDDEN, num_outputs),
    )


class TableNet(nn.Module):
    """A network for numeric columns (batch, numbers) and embedded categorical columns (batch, categories)."""

    def __init__(self, num_numbers: int, num_codes: list[int], num_outputs: int) -> None:
        super().__init__()
        widths = [min(16, (size + 1) // 2) for size in num_codes]
        self.embeddings = nn.ModuleList(nn.Embedding(*pair) for pair in zip(num_codes, widths, strict=True))
        self.head = head(num_numbers + sum(widths), num_outputs)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        embedded = [embed(codes[:, column]) for column, embed in enumerate(self.embeddings)]
        logits: Tensor = self.head(torch.cat([numbers, *embedded], 1))
        return logits
