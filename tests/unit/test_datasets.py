"""Datasets: order, labels, and errors that name what is wrong."""

import os
import pickle

import numpy as np
import psutil
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from helpers.pipeline import transforms
from helpers.pipeline.datasets import (
    CachingWitness,
    ClassFolderBulk,
    ClassFolderImages,
    EagerImages,
    FirstFrames,
    HeavyTailed,
    InMemory,
    InMemoryBulk,
    LatencyBound,
    OneTensorImages,
    check_batch,
    getitem_calls,
    read_image,
    to_tensor,
)
from helpers.pipeline.handles import (
    PerProcess,
    Records,
    RecordsOpenedEarly,
    RecordsOpenedOnce,
    SqliteRows,
    SqliteRowsBulk,
    write_records,
    write_sqlite,
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


def test_bytes_normalised_later_are_the_same_floats():
    torch.manual_seed(0)
    floats = transforms.training(16)(_gradient())
    torch.manual_seed(0)
    pixels = transforms.training_bytes(16)(_gradient())
    assert (type(pixels), pixels.dtype) == (torch.Tensor, torch.uint8)
    assert pixels.shape == (3, 16, 16)
    torch.testing.assert_close(transforms.normalise(pixels), floats)
    assert transforms.normalise(torch.stack([pixels] * 2)).shape == (2, 3, 16, 16)


def test_the_decoder_may_leave_pixels_out(tmp_path):
    path = tmp_path / "ant" / "x.jpg"
    path.parent.mkdir()
    _gradient().resize((96, 64)).save(path)
    assert read_image(path).size == (96, 64)
    assert read_image(path, at_least=64).size == (96, 64)
    assert read_image(path, at_least=32).size == (48, 32)
    assert ClassFolderImages(tmp_path, at_least=16)[0][0].shape == (3, 16, 24)


def _gradient() -> Image.Image:
    return Image.fromarray(np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3))


@pytest.mark.parametrize("kind", [EagerImages, OneTensorImages])
def test_images_decoded_early_are_the_same_images(root, kind):
    lazy, eager = ClassFolderImages(root), kind(root)
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


def test_read_image_closes_its_file(root):
    before = len(psutil.Process().open_files())
    image = read_image(root / "ant" / "01.png")
    assert len(psutil.Process().open_files()) == before
    assert image.mode == "RGB"


def test_bulk_fetch_gives_the_same_batches(root):
    _same_batches(InMemory(32, (3,)), InMemoryBulk(32, (3,)))
    _same_batches(ClassFolderImages(root), ClassFolderBulk(root))


def _same_batches(one_by_one, at_once):
    single, bulk = DataLoader(one_by_one, 4), DataLoader(at_once, 4)
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


def test_cache_belongs_to_the_process_that_fills_it():
    dataset = CachingWitness(3)
    assert [dataset[i]["hit"] for i in (0, 1, 0)] == [0, 0, 1]
    assert sorted(dataset.cache) == [0, 1]


def test_first_frame_is_a_view_of_the_clip_unless_cloned():
    view, own = (FirstFrames(frames=4, clone=clone)[3] for clone in (False, True))
    assert torch.equal(view, own)
    assert view.untyped_storage().nbytes() == 4 * own.untyped_storage().nbytes()


def test_per_process_opens_once_and_pickles_no_handle(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    file = PerProcess(open, path, "rb")
    assert file.get() is file.get()
    assert pickle.loads(pickle.dumps(file)).get().read() == b"content"
    opened = file.get()
    file.close()
    file.close()
    assert opened.closed and file.get() is not opened


@pytest.fixture
def records(tmp_path):
    """The path of a file of records, and its first 1024 rows."""
    path = tmp_path / "records.bin"
    return path, write_records(path, 4096)[:1024]


needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system cannot fork"
)


def _read(dataset):
    workers = {"num_workers": 2, "multiprocessing_context": "fork"}
    return torch.cat(list(DataLoader(dataset, batch_size=16, **workers)))


@needs_fork
@pytest.mark.parametrize("read_before", [False, True])
def test_records_are_right_in_forked_workers(records, read_before):
    path, table = records
    dataset = Records(path, len(table))
    if read_before:
        assert torch.equal(dataset[3], table[3])
    assert torch.equal(_read(dataset), table)


@needs_fork
def test_one_file_shared_by_forked_workers_gives_wrong_records(records):
    path, table = records
    once = RecordsOpenedOnce(path, len(table))
    assert torch.equal(_read(once), table)
    once[0]
    assert not torch.equal(_read(once), table)
    early = RecordsOpenedEarly(path, len(table))
    assert torch.equal(early[7], table[7])
    assert not torch.equal(_read(early), table)


def test_only_a_file_opened_per_process_can_be_pickled(records):
    path, table = records
    good, early = Records(path, len(table)), RecordsOpenedEarly(path, len(table))
    assert torch.equal(good[1], table[1])
    assert torch.equal(pickle.loads(pickle.dumps(good))[1], table[1])
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(early)


def test_one_query_gives_the_samples_in_the_order_asked_for(tmp_path):
    write_sqlite(tmp_path / "rows.db", rows=20, values=4)
    single = SqliteRows(tmp_path / "rows.db", 20)
    bulk = SqliteRowsBulk(tmp_path / "rows.db", 20)
    indices = [7, 3, 3, 19, 0]
    for (values, label), index in zip(bulk.__getitems__(indices), indices, strict=True):
        assert torch.equal(values, single[index][0])
        assert label == single[index][1] == index % 10
    assert single[7][0].shape == (4,)


def test_calls_are_counted_and_the_class_is_left_as_it_was():
    original = InMemory.__getitem__
    assert getitem_calls(DataLoader(InMemory(32), batch_size=8)) == 32
    assert getitem_calls(DataLoader(InMemoryBulk(32), batch_size=8)) == 0
    assert InMemory.__getitem__ is InMemoryBulk.__getitem__ is original
