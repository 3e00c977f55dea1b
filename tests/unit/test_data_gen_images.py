"""Pictures: options, bytes that depend on nothing else, boxes, faults, learning."""

import dataclasses
import hashlib
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from data_gen import ImageSpec, ensure, read_manifest
from data_gen.drawing import COLOURS, SHAPES, paint, plan_scene
from data_gen.images import FAULTS, Sample

SMALL = ImageSpec(per_class=6, size=32, broken=0.2)


def hashes(root: Path) -> dict[str, str]:
    """File below the root to the hash of its bytes."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# Options


@pytest.mark.parametrize(
    ("wrong", "allowed"),
    [
        ({"classes": 0}, "classes must be a whole number from 1 to 100"),
        ({"classes": 101}, "classes must be a whole number from 1 to 100"),
        ({"classes": True}, "classes must be a whole number from 1 to 100"),
        ({"per_class": 0}, "per_class must be a whole number from 1 to 1000000"),
        ({"per_class": 2.5}, "per_class must be a whole number from 1 to 1000000"),
        ({"per_class": (1, 2)}, "got 2 numbers for 10 classes"),
        ({"classes": 2, "per_class": (1, 0)}, "per_class must be a whole number"),
        ({"size": 15}, "size must be a whole number of pixels from 16 to 4096"),
        ({"size": (64, 32)}, "or two of them, low and high"),
        ({"size": (32, 5000)}, "size must be a whole number of pixels from 16 to 4096"),
        ({"format": "gif"}, "format must be 'jpeg' or 'png', got 'gif'"),
        ({"quality": 96}, "quality must be a whole number from 1 to 95, got 96"),
        ({"difficulty": 1.1}, "difficulty must be a number from 0 to 1, got 1.1"),
        ({"difficulty": float("nan")}, "difficulty must be a number from 0 to 1"),
        ({"broken": -0.1}, "broken must be a share from 0 to 1, got -0.1"),
        ({"broken": "half"}, "broken must be a share from 0 to 1, got 'half'"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, got -1"),
    ],
)
def test_wrong_value_names_the_option_and_its_range(wrong, allowed):
    with pytest.raises(ValueError) as caught:
        ImageSpec(**wrong)
    assert allowed in str(caught.value)
    assert "\n" not in str(caught.value)


def test_spec_accepts_lists_and_numpy_numbers_and_stays_hashable():
    spec = ImageSpec(classes=np.int64(2), per_class=[3, np.int32(4)], size=[32, 40])
    same = ImageSpec(classes=2, per_class=(3, 4), size=(32, 40))
    assert hash(spec) == hash(same)
    assert spec == same


def test_class_names_are_sorted_and_grow_by_addition():
    for classes in (1, 10, 37, 100):
        names = ImageSpec(classes=classes).class_names
        assert len(set(names)) == classes
        assert list(names) == sorted(names)
        assert set(names) <= set(ImageSpec(classes=100).class_names)


def test_counts_go_to_the_classes_in_label_order(tmp_path):
    spec = ImageSpec(classes=3, per_class=(5, 1, 2), size=16)
    root = ensure(spec, out=tmp_path / "set")
    found = {
        folder.name: len(list(folder.iterdir()))
        for folder in root.iterdir()
        if folder.is_dir()
    }
    assert found == dict(zip(spec.class_names, (5, 1, 2), strict=True))


# Same bytes


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_bytes_do_not_depend_on_run_or_processes(tmp_path, processes):
    once = hashes(ensure(SMALL, out=tmp_path / "once", processes=1))
    again = hashes(ensure(SMALL, out=tmp_path / "again", processes=processes))
    assert len(once) == 62
    assert again == once


def test_larger_set_holds_the_smaller_one(tmp_path):
    few = dataclasses.replace(SMALL, classes=4, per_class=3)
    small, large = (ensure(s, out=tmp_path / str(hash(s))) for s in (few, SMALL))
    inner, outer = hashes(small), hashes(large)
    images = {file for file in inner if "/" in file}
    assert len(images) == 12
    assert {file: outer[file] for file in images} == {
        file: inner[file] for file in images
    }
    assert set(read_manifest(small)) <= set(read_manifest(large))


def test_faults_leave_the_other_files_as_they_were(tmp_path):
    clean = hashes(ensure(dataclasses.replace(SMALL, broken=0), out=tmp_path / "clean"))
    root = ensure(SMALL, out=tmp_path / "broken")
    damaged = hashes(root)
    for record in read_manifest(root):
        same = damaged[record.file] == clean[record.file]
        assert same == (record.fault is None)


def test_no_two_pictures_are_alike(tmp_path):
    spec = ImageSpec(per_class=6, size=32)
    found = [
        Sample(dataclasses.replace(spec, seed=seed), name, index).file_bytes()
        for seed in (0, 1)
        for name in spec.class_names
        for index in range(6)
    ]
    assert len(set(found)) == len(found)


# Files


@pytest.mark.parametrize(("format", "suffix"), [("jpeg", ".jpg"), ("png", ".png")])
def test_manifest_tells_the_truth_about_each_file(tmp_path, format, suffix):
    spec = ImageSpec(per_class=4, size=(24, 60), format=format)
    root = ensure(spec, out=tmp_path / "set")
    records = read_manifest(root)
    files = {f for f in hashes(root) if "/" in f}
    assert [record.file for record in records] == sorted(files)
    for record in records:
        assert record.file.startswith(record.class_name + "/")
        assert record.file.endswith(suffix)
        with Image.open(root / record.file) as image:
            assert image.format == format.upper()
            assert image.mode == "RGB"
            assert image.size == (record.width, record.height)


def test_sizes_fill_their_range():
    spec = ImageSpec(size=(20, 23))
    records = [Sample(spec, "red_circle", index).record for index in range(200)]
    assert {record.width for record in records} == {20, 21, 22, 23}
    assert {record.height for record in records} == {20, 21, 22, 23}
    assert any(record.width != record.height for record in records)


def test_files_are_as_heavy_as_photos():
    spec = ImageSpec(size=(375, 500), quality=90)
    sizes = [
        len(Sample(spec, name, 0).file_bytes()) / 1000 for name in spec.class_names
    ]
    assert 40 < statistics.median(sizes) < 100
    assert max(sizes) > 1.3 * min(sizes)


def test_quality_sets_the_weight():
    low, high = (
        len(Sample(ImageSpec(quality=quality), "red_circle", 0).file_bytes())
        for quality in (50, 90)
    )
    assert low < 0.6 * high


# Faults


@pytest.mark.parametrize("format", ["jpeg", "png"])
@pytest.mark.parametrize("size", [16, 128])
def test_each_fault_is_what_it_says(tmp_path, format, size):
    spec = ImageSpec(classes=2, per_class=6, size=size, format=format, broken=1)
    root = ensure(spec, out=tmp_path / "set")
    records = read_manifest(root)
    assert Counter(record.fault for record in records).keys() == set(FAULTS)
    for record in records:
        path = root / record.file
        if record.fault == "empty":
            assert path.stat().st_size == 0
        elif record.fault == "truncated":
            with pytest.raises(OSError, match="(?i)truncated"), Image.open(path) as im:
                im.load()
        else:
            with Image.open(path) as image:
                assert image.getextrema() == ((0, 0),) * 3


@pytest.mark.parametrize("share", [0.03, 0.1, 0.5])
def test_share_of_faults_is_right_in_every_class(share):
    spec = ImageSpec(broken=share)
    for name in spec.class_names[:3]:
        faults = [Sample(spec, name, index).record.fault for index in range(200)]
        kinds = Counter(filter(None, faults))
        assert abs(sum(kinds.values()) - 200 * share) <= 2
        assert max(kinds.values()) - min(kinds.values()) <= 3


def test_faults_show_no_period():
    spec = ImageSpec(broken=0.1)
    broken = [i for i in range(200) if Sample(spec, "red_circle", i).record.fault]
    assert len(set(np.diff(broken))) > 1


# Difficulty


def test_difficulty_shrinks_tilts_and_clutters():
    sides, wide, scraps = [], [], []
    for difficulty in (0.0, 0.5, 1.0):
        scenes = [
            plan_scene("arrow", "red", (200, 200), difficulty, np.random.default_rng(n))
            for n in range(60)
        ]
        boxes = [piece.box for scene in scenes for piece in scene.objects]
        spans = [(right - left, low - high) for left, high, right, low in boxes]
        sides.append(statistics.mean(max(span) for span in spans))
        wide.append(sum(across > down for across, down in spans))
        scraps.append(statistics.mean(len(scene.scraps) for scene in scenes))
    assert sides[0] > 1.1 * sides[1] > 1.2 * sides[2]
    assert wide[0] == 0 < wide[1] and wide[2] > len(boxes) / 4
    assert scraps[0] == 0 < scraps[1] < scraps[2]


# Boxes


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_box_is_where_the_picture_changes(shape, difficulty):
    """Paint each object alone and not at all: the changed pixels are its box."""
    for number in range(4):
        rng = np.random.default_rng(number)
        scene = plan_scene(shape, "red", (160, 120), difficulty, rng)
        bare = dataclasses.replace(scene, objects=(), shadow=0.0)
        without = np.asarray(paint(bare, np.random.default_rng(5)), dtype=int)
        for piece in scene.objects:
            alone = dataclasses.replace(bare, objects=(piece,))
            change = np.asarray(paint(alone, np.random.default_rng(5))) - without
            rows, columns = np.nonzero(np.abs(change).sum(axis=2) > 12)
            seen = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
            assert np.abs(np.subtract(piece.box, seen)).max() <= 1


def test_boxes_lie_apart_inside_the_picture_and_vary_in_number():
    spec = ImageSpec(size=(40, 120), difficulty=0.5)
    numbers = Counter()
    for name in spec.class_names:
        for index in range(20):
            record = Sample(spec, name, index).record
            numbers[len(record.boxes)] += 1
            free = np.ones((record.height, record.width), dtype=bool)
            for left, top, right, bottom in record.boxes:
                assert 0 <= left < right <= record.width
                assert 0 <= top < bottom <= record.height
                assert free[top:bottom, left:right].all()
                free[top:bottom, left:right] = False
    assert set(numbers) == {1, 2, 3, 4}


def test_boxes_in_the_manifest_hold_the_colour_of_the_class(tmp_path):
    """The middle of a box is nearer to its own hue than to all others."""
    spec = ImageSpec(per_class=5, size=96, difficulty=0)
    root = ensure(spec, out=tmp_path / "set")
    hollow = ("ring", "moon")
    for record in read_manifest(root):
        colour, shape = record.class_name.split("_")
        if shape in hollow or colour in ("white", "black"):
            continue
        with Image.open(root / record.file) as image:
            hues = np.asarray(image.convert("HSV"))[:, :, 0] * (360 / 256)
        for left, top, right, bottom in record.boxes:
            hue = hues[(top + bottom) // 2, (left + right) // 2]
            assert abs((hue - COLOURS[colour][0] + 180) % 360 - 180) < 12


# Learning


def as_tensors(spec: ImageSpec) -> tuple[torch.Tensor, torch.Tensor]:
    """All pictures of a set, float32 [N, 3, size, size] in -1..1, and their labels."""
    images, labels = [], []
    for label, (name, count) in enumerate(
        zip(spec.class_names, spec.counts, strict=True)
    ):
        for index in range(count):
            images.append(np.asarray(Sample(spec, name, index).draw()))
            labels.append(label)
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    return pixels.float() / 127.5 - 1, torch.tensor(labels)


def trained(images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """A small network after eight epochs."""
    torch.manual_seed(0)
    layers = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        convolution = nn.Conv2d(before, after, 3, padding=1)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.append(nn.Linear(64, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(8):
        for rows in torch.randperm(len(images)).split(32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimiser.step()
    return model.eval()


@pytest.fixture
def one_thread():
    """Two threads of torch wait for each other where other work has the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_small_network_learns_the_classes(one_thread):
    """The test pictures come from another seed."""
    model = trained(*as_tensors(ImageSpec(per_class=50, size=32)))
    images, labels = as_tensors(ImageSpec(per_class=20, size=32, seed=1))
    with torch.no_grad():
        correct = (model(images).argmax(dim=1) == labels).float().mean().item()
    assert correct >= 0.9


# Import


def test_import_does_not_pull_in_torch():
    code = "import sys, data_gen; sys.exit('torch' in sys.modules)"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0
