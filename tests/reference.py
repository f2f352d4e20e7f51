"""Every score a second time: a plain Python loop in float64 over single observations, written from the papers."""

import math
from collections import defaultdict
from itertools import pairwise

# A stream is a list of epochs; an epoch a list of observations (index, label, [logits]).


def signals(logits, label):
    others = [z for k, z in enumerate(logits) if k != label]
    shift = max(logits)
    exps = [math.exp(z - shift) for z in logits]
    probabilities = [e / sum(exps) for e in exps]
    rest = [p for k, p in enumerate(probabilities) if k != label]
    one_hot = [float(k == label) for k in range(len(logits))]
    entropy = -sum(p * math.log(p) for p in probabilities if p > 0)
    sign = 1 if logits[label] > max(others) else -1
    return {
        "margin": logits[label] - max(others),
        "loss": math.log(sum(exps)) + shift - logits[label],
        "confidence": probabilities[label],
        "probability_margin": probabilities[label] - max(rest),
        "correct": float(logits[label] > max(others)),
        "el2n": math.sqrt(sum((p - t) ** 2 for p, t in zip(probabilities, one_hot, strict=True))),
        "signed_entropy": sign * (math.log(len(logits)) - entropy),
        "probabilities": probabilities,
    }


def mean(values):
    return math.fsum(values) / len(values)


def per_epoch(stream, num_samples):
    """For every sample the list of its epochs, each the mean signals of its observations in that epoch."""
    result = [[] for _ in range(num_samples)]
    for epoch in stream:
        seen = defaultdict(list)
        for index, label, logits in epoch:
            seen[index].append(signals(logits, label) | {"label": label})
        for index, shown in seen.items():
            means = {
                name: mean([one[name] for one in shown]) for name in shown[0] if name not in ("probabilities", "label")
            }
            columns = zip(*(one["probabilities"] for one in shown), strict=True)
            result[index].append(means | {"probabilities": [mean(c) for c in columns], "label": shown[0]["label"]})
    return result


def averaged_margin(epochs):
    averages = [mean(column) for column in zip(*(e["probabilities"] for e in epochs), strict=True)]
    own = averages.pop(epochs[0]["label"])
    return own - max(averages)


def forgetting(epochs):
    correct = [e["correct"] > 0.5 for e in epochs]
    if not any(correct):
        return -float(len(correct))
    return -float(sum(a and not b for a, b in pairwise(correct)))


def deviation(values):
    center = mean(values)
    return math.sqrt(mean([(value - center) ** 2 for value in values]))


def trend(values):
    """t statistic of the slope of a straight line; residuals are at least .01, and need three points."""
    number, center = len(values), mean(values)
    if number < 3:
        return 0.0
    times = [time - (number - 1) / 2 for time in range(number)]
    spread = sum(time**2 for time in times)
    slope = sum(time * value for time, value in zip(times, values, strict=True)) / spread
    residuals = [value - center - slope * time for time, value in zip(times, values, strict=True)]
    return slope / math.sqrt((sum(one**2 for one in residuals) / (number - 2) + 0.01**2) / spread)


FROM_EPOCHS = {
    "aum": lambda epochs: mean([e["margin"] for e in epochs]),
    "last_margin": lambda epochs: epochs[-1]["margin"],
    "last_loss": lambda epochs: -epochs[-1]["loss"],
    "mean_loss": lambda epochs: -mean([e["loss"] for e in epochs]),
    "probability_margin": lambda epochs: mean([e["probability_margin"] for e in epochs]),
    "averaged_margin": averaged_margin,
    "confidence": lambda epochs: mean([e["confidence"] for e in epochs]),
    "confidence_trend": lambda epochs: trend([e["confidence"] for e in epochs]),
    "signed_entropy": lambda epochs: mean([e["signed_entropy"] for e in epochs]),
    "variability": lambda epochs: deviation([e["confidence"] for e in epochs]),
    "correctness": lambda epochs: mean([e["correct"] for e in epochs]),
    "el2n": lambda epochs: -mean([e["el2n"] for e in epochs]),
    "forgetting": forgetting,
    "wrong_events": lambda epochs: -float(sum(e["correct"] <= 0.5 for e in epochs)),
}


def scores(name, stream, num_samples):
    return [FROM_EPOCHS[name](epochs) if epochs else math.nan for epochs in per_epoch(stream, num_samples)]
