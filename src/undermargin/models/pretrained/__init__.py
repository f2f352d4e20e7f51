"""Pretrained models by name: frozen features of images and texts, or a text network to fine-tune."""

from undermargin.models.pretrained.frozen import features
from undermargin.models.pretrained.names import check, image_size, is_tuned, names, takes_images
from undermargin.models.pretrained.tuned import TUNING, transformer

__all__ = ["TUNING", "check", "features", "image_size", "is_tuned", "names", "takes_images", "transformer"]
