"""Pretrained networks: frozen features of images and texts, or a text network to be tuned."""
