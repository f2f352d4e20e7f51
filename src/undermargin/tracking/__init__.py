"""From the logits of a training to one score per sample: signals, scores, `Tracker`, `Run`, trajectories."""
