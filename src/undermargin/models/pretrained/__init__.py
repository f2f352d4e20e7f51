"""Pretrained models: frozen features of images and texts, or a text network to fine-tune."""
