"""The table of experiments: every table and figure of the paper, and its claims that it does not plot."""

from collections.abc import Mapping
from types import MappingProxyType

from undermargin.paper.experiment import Experiment
from undermargin.paper.experiments import ablations, as_it_is, augmentation, dynamics, errors, identification, removal

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        "table-mnist": errors.MNIST,
        "table-cifar-uniform": errors.CIFAR_UNIFORM,
        "table-cifar-asymmetric": errors.CIFAR_ASYMMETRIC,
        "table-tiny-imagenet": errors.TINY_UNIFORM,
        "table-real": errors.REAL,
        "figure-precision-recall": identification.PRECISION_RECALL,
        "figure-precision-recall-asymmetric": identification.PRECISION_RECALL_ASYMMETRIC,
        "figure-histograms": identification.HISTOGRAMS,
        "figure-densities": as_it_is.DENSITIES,
        "figure-lowest": as_it_is.LOWEST,
        "figure-trajectories": dynamics.TRAJECTORIES,
        "figure-margins": dynamics.MARGINS,
        "figure-removal": removal.REMOVAL,
        "figure-percentiles": removal.PERCENTILE,
        "table-augmentation": augmentation.AUGMENTATION,
        "table-architectures": ablations.ARCHITECTURE,
        "table-batch-size": ablations.BATCH_SIZE,
        "table-stopping": ablations.STOPPING,
        "table-extra-class": ablations.EXTRA_CLASS,
        "table-cost": ablations.COST,
        "table-set-size": ablations.SET_SIZE,
    }
)
