"""How a data set is trained on, in each preset."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from undermargin.errors import InputError
from undermargin.training.engine import Budget

Preset = Literal["paper", "desktop", "laptop", "smoke"]
PRESETS: tuple[Preset, ...] = ("paper", "desktop", "laptop", "smoke")


@dataclass(frozen=True)
class Study:
    """One data set in one preset; an experiment trains like this except for what it varies."""

    data: str  # a row of OFFICIAL, or "digits"
    model: str  # a row of MODELS
    budget: Budget  # of every training except AUM's two folds, which end at its first learning rate drop
    fold_batch_size: int  # of AUM's two folds
    num_trials: int  # seeds
    num_classes: int | None = None  # keep this many classes, evenly spread; None: all
    num_train: int | None = None  # drawn with the cell's seed; None: all
    num_test: int | None = None  # the same samples for every seed; None: all
    augmentation: Literal["crops", "scaled crops", "none"] = "crops"
    image_size: int | None = None  # photos are resized to this side
    precision: Literal["full", "mixed"] = "full"  # mixed: bf16 where the processor has instructions for it

    @property
    def seeds(self) -> range:
        """One seed per trial."""
        return range(self.num_trials)


# fields younger than stored results, at the value those had: left out of a result's key, so that old keys stay valid
IMPLIED = {"precision": "full"}

# paper: experiment details, first paragraph. 45,000 and 95,000 images: the authors' code keeps 5,000 for validation
SMALL = Study(
    data="cifar10",
    model="resnet32",
    budget=Budget(epochs=300, batch_size=256, learning_rate=0.1, momentum=0.9, weight_decay=1e-4, drops=(0.5, 0.75)),
    fold_batch_size=64,
    num_trials=4,
    num_train=45_000,
)
# paper: "WebVision50 and Clothing100K"
LARGE = Study(
    data="webvision50",
    model="resnet50",
    budget=Budget(epochs=180, batch_size=256, learning_rate=0.1, momentum=0.9, weight_decay=1e-4, drops=(1 / 3, 2 / 3)),
    fold_batch_size=256,
    num_trials=1,
    augmentation="scaled crops",
    image_size=256,
)
# all of the paper's images, and a network whose first convolution halves them: about 20 core minutes per training.
# Short trainings memorize wrong labels only without augmentation, so experiments that augment say so
DESKTOP = replace(
    SMALL,
    model="resnet32-half",
    budget=replace(SMALL.budget, epochs=60),
    num_trials=1,
    augmentation="none",
    precision="mixed",
)
# 10,000 images, hours instead of days: the same procedure with a smaller network and a fifth of the epochs
LAPTOP = replace(
    SMALL,
    model="resnet8-half",
    budget=replace(SMALL.budget, epochs=60, batch_size=64),  # small batches: more steps
    num_trials=2,
    num_train=10_000,
    num_test=2_000,
)
LENET = Study(
    data="mnist",
    model="lenet",
    budget=Budget(epochs=40, batch_size=64, learning_rate=0.01, momentum=0.9, weight_decay=1e-4),
    fold_batch_size=64,
    num_trials=3,
    num_train=10_000,
    augmentation="none",
)
SMOKE = Study(
    data="digits",
    model="small",
    budget=Budget(epochs=2, batch_size=32, learning_rate=0.05, drops=(0.5,)),
    fold_batch_size=32,
    num_trials=1,
    num_train=240,
    num_test=60,
    augmentation="none",
)

STUDIES: Mapping[Preset, Mapping[str, Study]] = MappingProxyType(
    {
        "paper": {
            "cifar10": SMALL,
            "cifar100": replace(SMALL, data="cifar100", num_classes=100),
            "tiny-imagenet": replace(SMALL, data="tiny-imagenet", num_classes=200, num_train=95_000),
            "webvision50": LARGE,
            "clothing100k": replace(LARGE, data="clothing100k"),
            "clothing1m": replace(LARGE, data="clothing1m", budget=replace(LARGE.budget, epochs=90)),
            "imagenet": replace(LARGE, data="imagenet", budget=replace(LARGE.budget, epochs=90)),
            # the paper names LeNet and MNIST and no more: batch size, rate and length are ours
            "mnist": replace(LENET, num_trials=4, num_train=None),
        },
        "desktop": {"cifar10": DESKTOP},
        "laptop": {
            "cifar10": LAPTOP,
            # a tenth of it, every tenth class, at half its size
            "tiny-imagenet": replace(
                LAPTOP, data="tiny-imagenet", num_trials=1, num_classes=20, num_test=None, image_size=32
            ),
            "mnist": replace(LENET, model="lenet5"),
        },
        "smoke": dict.fromkeys(
            ("cifar10", "cifar100", "tiny-imagenet", "webvision50", "clothing100k", "clothing1m", "imagenet", "mnist"),
            SMOKE,
        ),
    }
)


TITLES: Mapping[str, str] = MappingProxyType(
    {
        "cifar10": "CIFAR-10",
        "cifar100": "CIFAR-100",
        "tiny-imagenet": "Tiny ImageNet",
        "webvision50": "WebVision50",
        "clothing100k": "Clothing100K",
        "clothing1m": "Clothing1M",
        "imagenet": "ImageNet",
        "mnist": "MNIST",
    }
)


def title(preset: Preset, data: str) -> str:
    """A data set's name in captions; where the laptop preset has only some of its classes, it says so.

    >>> title("paper", "tiny-imagenet"), title("laptop", "tiny-imagenet")
    ('Tiny ImageNet', 'Tiny ImageNet (20 of its classes)')
    """
    number = study(preset, data).num_classes if preset == "laptop" else None
    return TITLES[data] if number is None else f"{TITLES[data]} ({number} of its classes)"


def study(preset: Preset, data: str) -> Study:
    """How this data set is trained on in this preset."""
    if data not in STUDIES[preset]:
        raise InputError(f"preset {preset} has no {data}; it has {', '.join(STUDIES[preset])}")
    return STUDIES[preset][data]
