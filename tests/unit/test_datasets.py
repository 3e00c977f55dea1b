"""Datasets: order, labels, and errors that name what is wrong."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from helpers.pipeline import transforms
from helpers.pipeline.datasets import (
    ClassFolderImages,
    EagerImages,
    HeavyTailed,
    InMemory,
    InMemoryBulk,
    LatencyBound,
    check_batch,
    to_tensor,
)


@pytest.fixture
def root(tmp_path):
    for label, name in enumerate(["zebra", "ant", "mole"]):
        folder = tmp_path / name
        folder.mkdir()
        for number in (2, 1, 10):
            color = (40 * label, 10 * number, 0)
            Image.new("RGB", (12, 8), color).save(folder / f"{number:02}.png")
    (tmp_path / "notes.txt").write_text("not a class")
    (tmp_path / "ant" / "readme.md").write_text("not an image")
    return tmp_path


def test_classes_and_files_are_sorted(root):
    dataset = ClassFolderImages(root)
    assert dataset.classes == ["ant", "mole", "zebra"]
    assert list(dataset.files[:4]) == [
        "ant/01.png",
        "ant/02.png",
        "ant/10.png",
        "mole/01.png",
    ]
    assert list(dataset.labels) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_sample_is_the_image_and_its_label(root):
    image, label = ClassFolderImages(root)[6]
    assert (image.shape, image.dtype, label) == ((3, 8, 12), torch.uint8, 2)
    assert image[:, 0, 0].tolist() == [0, 10, 0]


def test_transform_is_applied(root):
    dataset = ClassFolderImages(root, transforms.evaluation(32))
    loader = DataLoader(dataset, batch_size=9)
    images, labels = next(iter(loader))
    check_batch(images, labels, (9, 3, 32, 32), classes=3)


def test_training_transform_gives_the_same_shape_and_varies(root):
    dataset = ClassFolderImages(root, transforms.training(16))
    first, second = dataset[0][0], transforms.training(16)(_gradient())
    assert first.shape == second.shape == (3, 16, 16)
    torch.manual_seed(0)
    one, two = (transforms.training(16)(_gradient()) for _ in range(2))
    assert not torch.equal(one, two)


def _gradient() -> Image.Image:
    return Image.fromarray(np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3))


def test_eager_images_are_the_same_images(root):
    lazy, eager = ClassFolderImages(root), EagerImages(root)
    assert len(lazy) == len(eager)
    for index in range(len(lazy)):
        assert torch.equal(lazy[index][0], eager[index][0])
        assert lazy[index][1] == eager[index][1]


def test_missing_root_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere"):
        ClassFolderImages(tmp_path / "nowhere")


def test_no_class_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no class folder"):
        ClassFolderImages(tmp_path)


def test_class_without_images_is_named(root):
    (root / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="class 'empty' has no images"):
        ClassFolderImages(root)


def test_folder_outside_the_class_list_is_named(root):
    with pytest.raises(ValueError, match=r"zebra is none .* outside 0\.\.1"):
        ClassFolderImages(root, classes=["ant", "mole"])


@pytest.mark.parametrize("content", [b"", b"this is not an image"])
def test_unreadable_file_is_named(root, content):
    (root / "ant" / "01.png").write_bytes(content)
    with pytest.raises(OSError, match=r"cannot read image .*ant.01\.png"):
        ClassFolderImages(root)[0]


def test_truncated_file_is_named(root):
    path = root / "ant" / "01.png"
    Image.effect_noise((64, 64), 50).convert("RGB").save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(OSError, match=r"cannot read image .*ant.01\.png"):
        ClassFolderImages(root)[0]


def test_bulk_fetch_gives_the_same_batches():
    single = DataLoader(InMemory(32, (3,)), batch_size=8)
    bulk = DataLoader(InMemoryBulk(32, (3,)), batch_size=8)
    for (values, labels), (values2, labels2) in zip(single, bulk, strict=True):
        assert torch.equal(values, values2) and torch.equal(labels, labels2)


def test_heavy_tailed_costs_depend_on_the_seed_and_have_a_tail():
    one, same, other = HeavyTailed(500), HeavyTailed(500), HeavyTailed(500, seed=1)
    assert (one.decodings == same.decodings).all()
    assert (one.decodings != other.decodings).any()
    assert np.median(one.decodings) <= 2
    assert one.decodings.max() >= 10 * np.median(one.decodings)
    assert one.decodings.max() <= 60
    assert one[0][0].shape == (3, 128, 128)


def test_latency_bound_waits_without_using_the_cpu():
    import time

    dataset = LatencyBound(4, wait_ms=100)
    wall, cpu = time.perf_counter(), time.process_time()
    dataset[0]
    assert time.perf_counter() - wall >= 0.1
    assert time.process_time() - cpu <= 0.05


GOOD = torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.zeros(4, 8, 8, 3), GOOD[1], "channels first"),
        (GOOD[0].to(torch.uint8), GOOD[1], "expected torch.float32"),
        (torch.full((4, 3, 8, 8), float("nan")), GOOD[1], "NaN"),
        (GOOD[0], GOOD[1].double(), "Python int"),
        (GOOD[0], GOOD[1][:3], "Python int"),
        (GOOD[0], torch.tensor([0, 1, 2, 3]), r"from 0 to 3, expected 0\.\.2"),
        (GOOD[0], torch.tensor([-1, 1, 2, 2]), "from -1 to 2"),
    ],
)
def test_check_batch_names_the_fault(images, labels, message):
    check_batch(*GOOD, (4, 3, 8, 8), classes=3)
    with pytest.raises(ValueError, match=message):
        check_batch(images, labels, (4, 3, 8, 8), classes=3)


def test_to_tensor_keeps_pixel_positions():
    image = Image.new("RGB", (3, 2))
    image.putpixel((2, 1), (1, 2, 3))
    tensor = to_tensor(image)
    assert tensor.shape == (3, 2, 3)
    assert tensor[:, 1, 2].tolist() == [1, 2, 3]
