import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # before anything imports keras
