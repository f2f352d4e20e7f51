"""A pretrained text network trained as a whole, in the same loop as every other.

Frozen features (`hf:NAME`) are what to take first. The network sees every text once, and both folds then train a small
network on what it made of them, in seconds. Tuning (`hf-tune:NAME`) shows every text to the whole network in every
epoch of both folds, and a network of that size soon learns wrong labels by heart: a small learning rate and few epochs
are not only for speed. It is worth that where the frozen network does not know what tells the classes apart (another
language, a trade's jargon, how a thing is said instead of what), or where the tuned network is the one that will be
used and its own margins are asked for.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from undermargin.models import names
from undermargin.models.pretrained import huggingface

# Devlin et al. 2019 (BERT), appendix A.3: 2 to 4 epochs of AdamW with batches of 16 or 32
TUNING: Mapping[str, Any] = MappingProxyType(
    {"epochs": 4, "batch_size": 32, "optimizer": "adamw", "learning_rate": 5e-5}
)
DROPOUT = 0.1


def transformer(name: str, texts: list[str]) -> tuple[tuple[Tensor, Tensor], Callable[[int], nn.Module]]:
    """What a training of `hf-tune:NAME` takes: (`input_ids`, `attention_mask`), each (texts, tokens), and a function
    that makes the network for a number of outputs, its last layer drawn anew each time."""
    names.check(name, "text")
    _, own_name = names.split(name)
    inputs = huggingface.tokens(huggingface.tokenizer(own_name), texts)
    return inputs, partial(Classifier, own_name)


class Classifier(nn.Module):
    """A pretrained network, the mean over the tokens, and a linear layer: the features of `hf:NAME`, learned."""

    def __init__(self, name: str, num_outputs: int) -> None:
        super().__init__()
        self.body = huggingface.text_network(name)
        for path, weight in self.body.named_parameters():
            if "pooler" in path:  # not used here, and several processes would wait for its gradient
                weight.requires_grad_(False)
        self.dropout = nn.Dropout(DROPOUT)
        one_token = torch.ones(1, 1, dtype=torch.int64)
        with torch.no_grad():  # families call their width by many names; all of them show it
            width = self.body.eval()(one_token, one_token).shape[1]
        self.output = nn.Linear(width, num_outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        longest = int(attention_mask.sum(1).max())  # the data set's longest text is seldom in the batch
        pooled = self.body(input_ids[:, :longest], attention_mask[:, :longest])
        logits: Tensor = self.output(self.dropout(pooled))
        return logits
