"""The data of the paper's experiments: parts of sets, photos that do not fit into memory, crops."""

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from undermargin.errors import InputError
from undermargin.models.images import Centre
from undermargin.paper import Runner, Store
from undermargin.paper.cell import Cell
from undermargin.paper.prepared import prepare
from undermargin.sources.digits import load_digits
from undermargin.sources.official.record import OfficialSet
from undermargin.sources.pixels import Pixels
from undermargin.training.augmentation import ScaledCrops

SMOKE = Cell("fit", "smoke", "mnist", "uniform", 0.4, "standard")


def test_a_data_set_that_is_smaller_than_the_preset_says_is_refused(tmp_path):
    with pytest.raises(InputError, match="digits has 1437 training samples here, this preset needs 5000"):
        Runner(Store(tmp_path), tmp_path).run([SMOKE.varied(num_train=5000)])
    with pytest.raises(InputError, match="digits has 10 classes here, this preset needs 200"):
        Runner(Store(tmp_path), tmp_path).run([SMOKE.varied(num_classes=200)])


def test_of_a_set_with_more_classes_than_the_preset_has_every_so_manieth_is_taken(tmp_path):
    cell = SMOKE.varied(num_classes=5, num_train=100, num_test=None)
    found = prepare(cell, tmp_path, tmp_path)
    digits = load_digits()
    assert found.class_names == ["0", "2", "4", "6", "8"]
    even = digits.test_labels[digits.test_labels % 2 == 0]
    assert (found.labels[found.test_rows] * 2).tolist() == even.tolist()
    images = digits.train_images[digits.train_labels % 2 == 0][found.indices]
    assert np.array_equal(found.images[:100], images)


def test_a_photo_that_cannot_be_read_is_left_out_with_its_label_and_said_so(tmp_path, monkeypatch):
    _sixty_photos(monkeypatch, unreadable=7)
    found = prepare(OF_SIXTY, tmp_path, tmp_path)
    left = [place for place in range(60) if place != 7]
    assert found.indices.tolist() == left
    assert (found.images[:, 0, 0, 0] == left + left).all()
    assert found.true_labels.tolist() == found.labels[found.test_rows].tolist() == [place % 10 for place in left]
    assert found.source["unreadable"] == "2 left out, first train/7.png: not an image"


def test_photos_that_do_not_fit_into_memory_are_decoded_once_for_all_cells(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=0))
    train, test = _sixty_photos(monkeypatch, unreadable=7)
    first = prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    again = prepare(replace(OF_SIXTY, recipe="aum"), tmp_path, tmp_path / "photos")
    assert train.images.num_read == test.images.num_read == 60
    assert isinstance(again.images, Pixels)
    assert again.images[:].tolist() == first.images[:].tolist()
    assert (again.indices.tolist(), again.source) == (first.indices.tolist(), first.source)
    larger = prepare(OF_SIXTY.varied(image_size=16), tmp_path, tmp_path / "photos")
    assert larger.images.shape == (118, 16, 16, 3)


def test_photos_whose_decoding_was_killed_are_decoded_again(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=0))
    _, test = _sixty_photos(monkeypatch)
    with monkeypatch.context() as killing:
        killing.setattr(test.images, "read", _killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    found = prepare(OF_SIXTY, tmp_path, tmp_path / "photos")
    assert found.images[:][:, 0, 0, 0].tolist() == [*range(60), *range(60)]


OF_SIXTY = SMOKE.varied(num_train=60, num_test=60, image_size=8)


def _sixty_photos(monkeypatch, unreadable=None):
    """A training and a test set of sixty photos, each as grey as its place says."""
    files = {f"{place}.png": b"no image" if place == unreadable else _png(place) for place in range(60)}
    train, test = (
        OfficialSet(
            _Files({f"{part}/{name}": data for name, data in files.items()}), np.arange(60) % 10, list("0123456789")
        )
        for part in ("train", "test")
    )
    monkeypatch.setattr("undermargin.paper.prepared.official_training_set", lambda study, root: train)
    monkeypatch.setattr("undermargin.paper.prepared._official_test_set", lambda study, root: test)
    return train, test


class _Files:
    def __init__(self, files):
        self.ids, self.contents, self.num_read = list(files), list(files.values()), 0

    def read(self, index):
        self.num_read += 1
        return self.contents[index]


def _killed(index):
    raise KeyboardInterrupt


def _png(grey):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (grey, grey, grey)).save(file, "png")
    return file.getvalue()


def test_a_photo_is_tested_on_its_middle_and_trained_on_random_parts():
    photo = torch.arange(36, dtype=torch.uint8).view(1, 6, 6, 1)
    assert Centre(2)(photo).flatten().tolist() == [14, 15, 20, 21]
    assert torch.equal(Centre(6)(photo), photo)
    whole = ScaledCrops(6, area=1.0, shape=1.0)
    seen = {tuple(whole((photo,), _drawn(seed))[0].flatten().tolist()) for seed in range(20)}
    assert seen == {tuple(photo.flatten().tolist()), tuple(photo.flip(2).flatten().tolist())}  # or mirrored
    photos = torch.randint(0, 256, (50, 32, 32, 3), dtype=torch.uint8, generator=_drawn(0))
    parts, labels = ScaledCrops(8)((photos, torch.arange(50)), _drawn(1))
    assert parts.shape == (50, 8, 8, 3)
    assert parts.dtype == torch.uint8
    assert torch.equal(parts, ScaledCrops(8)((photos, labels), _drawn(1))[0])
    assert not torch.equal(parts, ScaledCrops(8)((photos, labels), _drawn(2))[0])


def test_a_part_of_a_photo_covers_the_share_of_its_area_that_was_drawn():
    """A ramp from left to right: how far its values spread is how wide the part was."""
    ramp = torch.arange(0, 250, 1, dtype=torch.uint8)[None, None, :, None].expand(200, 250, 250, 1)
    parts = ScaledCrops(50, area=0.25, shape=1.0)((ramp,), _drawn(0))[0].float()
    widths = (parts.amax((1, 2, 3)) - parts.amin((1, 2, 3))) / 250 * 50 / 49
    assert 0.48 < widths.min() < 0.55  # the root of a quarter
    assert 0.95 < widths.max() <= 1.02


def _drawn(seed):
    return torch.Generator().manual_seed(seed)
