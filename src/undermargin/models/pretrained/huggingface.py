"""Hugging Face models from a local folder or the hub: `NAME`, `NAME@REVISION` or a path.

Models are not trusted: code that comes with a model is never run, and weights are read from safetensors only.
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
MAX_TOKENS = 128  # longer texts are truncated: this is enough to classify them, and attention is quadratic

T = TypeVar("T")


def scaling(name: str) -> Scaling:
    """The preprocessing from the image processor's configuration; the processor itself may need torchvision."""
    _check(name)
    read = library("transformers", extra=EXTRA).ImageProcessingMixin.get_image_processor_dict
    try:
        config, _ = _load(name, read)
    except ModelError:
        raise ModelError(f"hf:{name} has no image processor, so it is not an image model") from None
    side = config.get("crop_size") if config.get("do_center_crop", "crop_size" in config) else config.get("size")
    size = next(iter(side.values())) if isinstance(side, dict) and side else side
    if not isinstance(size, int):
        raise ModelError(f"the image processor of hf:{name} does not specify an image size; is it an image model?")
    factor = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1.0
    is_centred = config.get("do_normalize", True) and "image_mean" in config
    mean, deviation = (config["image_mean"], config["image_std"]) if is_centred else ((0.0,) * 3, (1.0,) * 3)
    return Scaling(size, tuple(value / factor for value in mean), tuple(value / factor for value in deviation))


def tokenizer(name: str) -> Any:
    """The model's tokenizer, with padding on the right."""
    _check(name)
    try:
        made: Any = _load(name, library("transformers", extra=EXTRA).AutoTokenizer.from_pretrained)
    except ModelError:
        made = None
    # some tokenizers are created even if their file is missing, with an empty vocabulary
    if made is None or len(made) <= len(made.all_special_tokens):
        raise ModelError(f"hf:{name} has no tokenizer, so it is not a text model")
    made.padding_side = "right"
    if made.pad_token is None:
        made.pad_token = made.eos_token  # padding is masked, so any token will do
    return made


def tokens(made: Any, texts: list[str]) -> tuple[Tensor, Tensor]:
    """`input_ids` and `attention_mask` of the texts, padded to the longest: (texts, tokens) each."""
    limit = min(MAX_TOKENS, made.model_max_length)
    batch = made(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"]


def image_network(name: str) -> nn.Module:
    """A network from pixels (batch, 3, size, size) to the mean over patches (batch, features)."""
    return _Images(_model(name))


def text_network(name: str) -> nn.Module:
    """A network from tokens and mask (batch, tokens) to the mean over tokens (batch, features)."""
    return _Text(_model(name))


def _model(name: str) -> Any:
    load = library("transformers", extra=EXTRA).AutoModel.from_pretrained
    made, info = _load(name, load, use_safetensors=True, dtype=torch.float32, output_loading_info=True)
    # poolers are not used here; any other missing weight would be random
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise ModelError(f"hf:{name} lacks {len(missing)} weights, the first is {missing[0]}; choose another model")
    return made


def _check(name: str) -> None:
    """Raise `ModelError` unless the model exists and needs no code of its own."""
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
    """Suppress reports about unused weights; progress bars of downloads are still shown."""
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
        if hasattr(self.body, "get_image_features"):  # a dual encoder for images and text, such as CLIP
            pooled: Tensor = self.body.get_image_features(pixel_values=pixels).pooler_output
            return pooled
        hidden: Tensor = self.body(pixel_values=pixels).last_hidden_state
        return hidden.mean((2, 3) if hidden.ndim == 4 else 1)


class _Text(nn.Module):
    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body.get_encoder() if body.config.is_encoder_decoder else body

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        if hasattr(self.body, "get_text_features"):  # a dual encoder for images and text, such as CLIP
            pooled: Tensor = self.body.get_text_features(input_ids, attention_mask=attention_mask).pooler_output
            return pooled
        hidden: Tensor = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
