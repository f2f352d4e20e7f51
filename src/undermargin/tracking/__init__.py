"""From the logits of a training to one score per sample: signals, scores, the tracker, `Run`, trajectories."""
