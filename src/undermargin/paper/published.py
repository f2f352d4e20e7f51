"""The numbers in the paper's tables: test error in percent, mean and standard deviation over trials."""

from collections.abc import Mapping
from types import MappingProxyType

DIVERGED = "Diverged"
Number = (
    tuple[float, float] | float | str | None
)  # (mean, standard deviation), mean, Diverged, or None if not in the paper
Numbers = Mapping[str, tuple[Number, ...]]

RATES = (0.2, 0.4, 0.6, 0.8)
ASYMMETRIC_RATES = (0.2, 0.4)

UNIFORM: Mapping[str, Numbers] = MappingProxyType(
    {
        "cifar10": {
            "standard": ((25.0, 0.3), (43.3, 0.4), (63.3, 0.4), (83.4, 0.2)),
            "random_weighting": ((16.5, 0.3), (22.8, 0.8), (35.8, 1.4), (55.6, 2.8)),
            "bootstrap_soft": ((22.4, 0.2), (37.4, 0.4), (52.0, 0.2), (68.8, 0.5)),
            "mentornet": ((13.3, 0.1), (18.1, 0.2), None, (66.0, 2.5)),
            "co_teaching": ((11.2, 0.1), (13.5, 0.1), (19.3, 0.1), (80.7, 0.6)),
            "d2l": ((12.3, 0.2), (15.6, 0.3), (27.3, 0.6), DIVERGED),
            "l_dmi": ((14.1, 0.1), (20.4, 0.8), (34.9, 1.2), (67.2, 1.4)),
            "data_parameters": ((17.9, 0.2), (29.2, 0.9), (50.7, 0.7), (81.1, 0.3)),
            "dy_bootstrap": ((20.6, 0.1), (31.2, 1.4), (43.6, 1.7), DIVERGED),
            "incv": ((10.5, 0.1), (13.2, 0.1), (18.9, 0.3), (46.7, 1.9)),
            "aum": ((9.8, 0.0), (12.5, 0.1), (17.9, 0.0), (45.6, 1.6)),
            "oracle": ((9.0, 0.1), (9.7, 0.4), (10.8, 0.9), (12.6, 1.7)),
        },
        "cifar100": {
            "standard": ((50.4, 0.2), (62.5, 0.2), (76.2, 0.4), (91.8, 0.3)),
            "random_weighting": ((43.0, 0.1), (51.2, 0.2), (63.5, 0.5), (83.7, 0.9)),
            "bootstrap_soft": ((48.6, 0.2), (58.9, 0.2), (70.3, 0.2), (89.8, 0.8)),
            "mentornet": ((35.8, 0.3), (42.5, 0.2), None, (75.7, 0.7)),
            "co_teaching": ((35.9, 0.1), (39.8, 0.2), (52.0, 0.3), (89.1, 0.7)),
            "d2l": ((46.0, 1.0), (70.3, 1.8), DIVERGED, DIVERGED),
            "l_dmi": (DIVERGED, DIVERGED, DIVERGED, DIVERGED),
            "data_parameters": ((43.7, 1.4), (53.9, 0.4), (67.2, 2.3), (88.1, 1.2)),
            "dy_bootstrap": ((47.0, 0.4), (57.0, 0.3), (63.4, 0.5), (87.2, 0.5)),
            "incv": ((41.4, 0.5), (44.6, 0.2), (56.3, 0.3), (76.3, 0.6)),
            "aum": ((34.5, 0.2), (38.7, 0.1), (47.0, 0.5), (68.3, 0.7)),
            "oracle": ((35.5, 0.1), (39.0, 0.2), (44.8, 0.5), (55.1, 0.4)),
        },
        "tiny-imagenet": {
            "standard": ((58.6, 0.1), (66.3, 0.2), (77.6, 0.1), (92.4, 0.1)),
            "random_weighting": ((54.3, 0.1), (60.8, 0.1), (70.7, 0.2), (87.1, 1.0)),
            "data_parameters": ((54.2, 0.1), (68.4, 0.1), (84.3, 0.3), (96.5, 0.1)),
            "dy_bootstrap": ((58.2, 0.1), (63.7, 0.2), (76.8, 0.0), (93.2, 0.4)),
            "incv": ((54.8, 0.1), (57.4, 0.1), (63.8, 0.2), (82.6, 0.7)),
            "aum": ((51.1, 0.2), (55.3, 0.1), (62.7, 0.3), (79.2, 0.2)),
            "oracle": ((52.7, 0.3), (56.5, 0.2), (63.0, 0.3), (71.2, 0.1)),
        },
    }
)

ASYMMETRIC: Mapping[str, Numbers] = MappingProxyType(
    {
        "cifar10": {
            "standard": ((23.7, 0.1), (43.7, 0.0)),
            "random_weighting": ((16.1, 0.2), (34.8, 1.3)),
            "bootstrap_soft": ((23.8, 0.2), (45.0, 0.6)),
            "d2l": ((11.4, 0.2), (23.6, 1.5)),
            "l_dmi": ((13.3, 0.8), (16.0, 2.1)),
            "data_parameters": ((17.9, 0.2), (44.5, 0.7)),
            "dy_bootstrap": ((22.1, 0.1), (40.6, 0.6)),
            "incv": ((11.7, 0.1), (20.2, 0.4)),
            "aum": ((10.3, 0.1), (41.3, 0.2)),
            "oracle": ((9.2, 0.1), (10.8, 0.1)),
        },
        "cifar100": {
            "standard": ((47.1, 0.2), (61.8, 0.0)),
            "random_weighting": ((42.3, 0.2), (57.1, 0.2)),
            "bootstrap_soft": ((46.6, 0.3), (61.3, 0.3)),
            "d2l": ((56.4, 0.7), (83.1, 1.2)),
            "l_dmi": (DIVERGED, DIVERGED),
            "data_parameters": ((43.8, 0.5), (61.0, 0.4)),
            "dy_bootstrap": ((46.8, 0.0), (62.1, 0.0)),
            "incv": ((43.2, 0.1), (55.6, 0.7)),
            "aum": ((40.3, 0.2), (59.8, 0.1)),
            "oracle": ((35.3, 0.2), (38.8, 0.2)),
        },
    }
)

# data sets as they are: test error, and the share of samples that a recipe removes
REAL_DATA = ("webvision50", "clothing100k", "clothing1m", "cifar10", "cifar100", "tiny-imagenet", "imagenet")
REAL: Numbers = MappingProxyType(
    {
        "standard": (21.4, 35.8, 33.5, (8.1, 0.1), (33.0, 0.3), (49.3, 0.1), 24.2),
        "data_parameters": (21.5, 35.5, None, (8.1, 0.0), (36.4, 1.4), (48.4, 0.2), 24.1),
        "dy_bootstrap": (25.8, 38.4, None, (10.0, 0.0), (34.9, 0.1), (51.6, 0.0), 32.0),
        "incv": (22.1, 33.3, None, (9.1, 0.0), (38.2, 0.1), (56.1, 0.1), 29.5),
        "aum": (19.8, 33.5, 29.6, (7.9, 0.0), (31.8, 0.1), (48.6, 0.1), 24.4),
    }
)
REAL_REMOVED: Numbers = MappingProxyType(
    {
        "dy_bootstrap": (4.6, 12.1, None, (15.5, 0.2), (7.3, 0.1), (12.5, 0.0), 10.7),
        "incv": (26.2, 25.2, None, (8.5, 0.1), (27.4, 0.1), (27.6, 1.4), 7.4),
        "aum": (17.8, 16.7, 10.7, (3.0, 0.1), (13.0, 0.9), (19.9, 0.1), 2.7),
    }
)
