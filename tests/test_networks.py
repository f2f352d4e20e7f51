"""The paper's networks: sizes as published, shapes, and images they cannot take."""

import pytest
import torch

from undermargin.errors import InputError
from undermargin.models.images import SPREADS, Standardised
from undermargin.models.networks import NETWORKS

CHANNELS = {"lenet": 1}
SIDES = {"lenet": 28}


def size(name, num_outputs=10):
    return sum(value.numel() for value in NETWORKS[name](num_outputs, channels=CHANNELS.get(name, 3)).parameters())


@pytest.mark.parametrize(
    ("name", "num_outputs", "published"),
    [
        ("lenet", 10, 431_080),  # Caffe's LeNet for MNIST, "431k" in Han et al. 2015, table 1
        ("lenet-cifar", 10, 62_006),  # the classifier of PyTorch's CIFAR-10 tutorial
    ],
)
def test_the_number_of_parameters_is_the_published_one(name, num_outputs, published):
    assert size(name, num_outputs) == published


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_has_room_for_the_extra_label(name):
    side, channels = SIDES.get(name, 32), CHANNELS.get(name, 3)
    network = NETWORKS[name](11, channels=channels).eval()
    assert network(torch.zeros(2, channels, side, side)).shape == (2, 11)


@pytest.mark.parametrize(("name", "side", "needed"), [("lenet", 32, "28 x 28"), ("lenet-cifar", 28, "32 x 32")])
def test_images_of_a_size_that_a_network_cannot_take_are_refused(name, side, needed):
    network = NETWORKS[name](10, channels=1)
    with pytest.raises(InputError, match=f"{side} x {side} pixels, this network needs {needed}"):
        network(torch.zeros(2, 1, side, side))


def test_bytes_are_standardised_by_the_constants_of_a_data_set():
    model = Standardised(torch.nn.Flatten(), SPREADS["cifar10"])
    images = torch.tensor([[[[0, 128, 255]]]], dtype=torch.uint8)  # one image of one pixel
    by_hand = [(0 - 0.4914) / 0.2471, (128 / 255 - 0.4824) / 0.2435, (1 - 0.4467) / 0.2616]
    torch.testing.assert_close(model(images), torch.tensor([by_hand]))
    assert not model.state_dict()


def test_constants_for_other_channels_are_refused():
    with pytest.raises(InputError, match="1 channels, the constants are for 3"):
        Standardised(torch.nn.Flatten(), SPREADS["cifar10"])(torch.zeros(1, 4, 4, 1, dtype=torch.uint8))
