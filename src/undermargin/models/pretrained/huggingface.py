"""Hugging Face models, from a folder or the hub: `NAME`, `NAME@REVISION` or a path.

Nothing that comes with a model is trusted: its own code is never run, and its weights are read from safetensors only.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from undermargin.errors import ModelError
from undermargin.models.pretrained.libraries import library, one_line
from undermargin.models.pretrained.scaling import Scaling

EXTRA = "transformers"
MAX_TOKENS = 128  # a text is cut here: enough to tell its class, and attention's cost grows with the square

T = TypeVar("T")


def scaling(name: str) -> Scaling:
    """As the model's image processor says. Only its file is read: the processor itself may need torchvision."""
    _check(name)
    read = library("transformers", extra=EXTRA).ImageProcessingMixin.get_image_processor_dict
    try:
        config, _ = _load(name, read)
    except ModelError:
        raise ModelError(f"hf:{name} has no image processor; it is not a model of images") from None
    side = config.get("crop_size") if config.get("do_center_crop", "crop_size" in config) else config.get("size")
    size = next(iter(side.values())) if isinstance(side, dict) and side else side
    if not isinstance(size, int):
        raise ModelError(f"hf:{name} does not say how large its images are; is it a model of images?")
    factor = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1.0
    is_centred = config.get("do_normalize", True) and "image_mean" in config
    mean, deviation = (config["image_mean"], config["image_std"]) if is_centred else ((0.0,) * 3, (1.0,) * 3)
    return Scaling(size, tuple(value / factor for value in mean), tuple(value / factor for value in deviation))


def tokenizer(name: str) -> Any:
    """The model's tokenizer, padding at the end."""
    _check(name)
    try:
        made: Any = _load(name, library("transformers", extra=EXTRA).AutoTokenizer.from_pretrained)
    except ModelError:
        made = None
    # without its file, some tokenizers are made all the same, and know no word
    if made is None or len(made) <= len(made.all_special_tokens):
        raise ModelError(f"hf:{name} has no tokenizer; it is not a model of text")
    made.padding_side = "right"
    if made.pad_token is None:
        made.pad_token = made.eos_token  # it is masked, so any token does
    return made


def tokens(made: Any, texts: list[str]) -> tuple[Tensor, Tensor]:
    """`input_ids` and `attention_mask` of these texts, each (texts, tokens of the longest)."""
    limit = min(MAX_TOKENS, made.model_max_length)
    batch = made(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"]


def image_network(name: str) -> nn.Module:
    """Pixels (batch, 3, size, size) -> the mean over patches (batch, numbers)."""
    return _Images(_model(name))


def text_network(name: str) -> nn.Module:
    """Tokens and mask (batch, tokens) -> the mean over tokens (batch, numbers)."""
    return _Text(_model(name))


def _model(name: str) -> Any:
    load = library("transformers", extra=EXTRA).AutoModel.from_pretrained
    made, info = _load(name, load, use_safetensors=True, dtype=torch.float32, output_loading_info=True)
    # poolers belong to tasks we do not have and are not used here; anything else missing would be random numbers
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise ModelError(f"hf:{name} lacks {len(missing)} of its weights, {missing[0]} first; it cannot be used")
    return made


def _check(name: str) -> None:
    """Whether there is such a model, and one that needs no code of its own."""
    _load(name, library("transformers", extra=EXTRA).AutoConfig.from_pretrained)


def _load(name: str, load: Callable[..., T], **options: Any) -> T:
    path, _, revision = (name, "", "") if Path(name).is_dir() else name.partition("@")
    try:
        with _quiet():
            return load(path, revision=revision or "main", trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError) as error:
        raise ModelError(f"hf:{name} cannot be loaded: {one_line(error)}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without reports of what loading left out; downloads still show how far they are."""
    logging = library("transformers", extra=EXTRA).utils.logging
    before, is_shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub = library("huggingface_hub.utils", extra=EXTRA)
    are_downloads_shown = not hub.are_progress_bars_disabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if are_downloads_shown:
        hub.enable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if is_shown:
            logging.enable_progress_bar()


class _Images(nn.Module):
    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body

    def forward(self, pixels: Tensor) -> Tensor:
        if hasattr(self.body, "get_image_features"):  # a pair of networks, for images and text
            pooled: Tensor = self.body.get_image_features(pixel_values=pixels).pooler_output
            return pooled
        hidden: Tensor = self.body(pixel_values=pixels).last_hidden_state
        return hidden.mean((2, 3) if hidden.ndim == 4 else 1)


class _Text(nn.Module):
    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body.get_encoder() if body.config.is_encoder_decoder else body

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        if hasattr(self.body, "get_text_features"):  # a pair of networks, for images and text
            pooled: Tensor = self.body.get_text_features(input_ids, attention_mask=attention_mask).pooler_output
            return pooled
        hidden: Tensor = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
