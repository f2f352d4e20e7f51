"""The page where a human decides: looks, keeps, relabels, drops, and takes back."""
