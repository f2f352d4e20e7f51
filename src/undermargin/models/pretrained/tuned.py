"""Fine-tuning of a pretrained text network, in the same training loop as all other networks.

Try frozen features (`hf:NAME`) first: the network processes every text once, and both folds then train a small network
on the features within seconds. Fine-tuning (`hf-tune:NAME`) runs the whole network on every text in every epoch of both
folds. A network of that size memorizes wrong labels quickly, so the small learning rate and the few epochs are not only
for speed. Fine-tuning pays off if the frozen features do not separate the classes (another language, domain-specific
terms, style rather than content), or if the fine-tuned network is the one you will deploy and you want its margins.
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
    """The inputs of `hf-tune:NAME`, `input_ids` and `attention_mask` of shape (texts, tokens), and a function from the
    number of outputs to a network with a newly initialized last layer."""
    names.check(name, "text")
    _, own_name = names.split(name)
    inputs = huggingface.tokens(huggingface.tokenizer(own_name), texts)
    return inputs, partial(Classifier, own_name)


class Classifier(nn.Module):
    """A pretrained network, the mean over tokens, and a linear layer; all weights are trained."""

    def __init__(self, name: str, num_outputs: int) -> None:
        super().__init__()
        self.body = huggingface.text_network(name)
        for path, weight in self.body.named_parameters():
            if "pooler" in path:  # unused here; distributed training would wait for its gradient
                weight.requires_grad_(False)
        self.dropout = nn.Dropout(DROPOUT)
        one_token = torch.ones(1, 1, dtype=torch.int64)
        with torch.no_grad():  # model families name their width differently, so it is measured
            width = self.body.eval()(one_token, one_token).shape[1]
        self.output = nn.Linear(width, num_outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, outputs)."""
        longest = int(attention_mask.sum(1).max())  # cut the padding: few batches contain the longest text
        pooled = self.body(input_ids[:, :longest], attention_mask[:, :longest])
        logits: Tensor = self.output(self.dropout(pooled))
        return logits
