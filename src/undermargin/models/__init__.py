"""Network architectures and pretrained models."""
