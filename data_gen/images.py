"""Folders of labelled pictures: one folder per class, and a manifest with the boxes.

    root/
        spec.json           what was asked for
        manifest.jsonl      one line per picture, in the order of the files
        black_flower/000000.jpg
        black_flower/000001.jpg
        blue_square/000000.jpg

A class is a shape in a colour. A picture depends only on the seed, its class, its
index within the class and the options on how it looks: never on how many pictures
there are, nor on which process draws it.
"""

from __future__ import annotations

import dataclasses
import io
import json
import operator
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image
from tqdm import tqdm

from data_gen import drawing, workers

FAULTS = ("truncated", "empty", "black")
MANIFEST = "manifest.jsonl"

ALLOWED = {
    "classes": "a whole number from 1 to 100",
    "per_class": "a whole number from 1 to 1000000, or one such number per class",
    "size": "a whole number of pixels from 16 to 4096, or two of them, low and high",
    "format": "'jpeg' or 'png'",
    "quality": "a whole number from 1 to 95",
    "difficulty": "a number from 0 to 1",
    "broken": "a share from 0 to 1",
    "seed": "a whole number from 0 to 4294967295",
}
_SUFFIX = {"jpeg": ".jpg", "png": ".png"}
_GOLDEN = (5**0.5 - 1) / 2

# The independent streams of random numbers that each sample has.
_PLAN, _PAINT, _FAULT = range(3)


def _all_classes() -> dict[str, tuple[str, str]]:
    """Class name to (colour, shape); the first ten differ in both."""
    colours, shapes = list(drawing.COLOURS), list(drawing.SHAPES)
    pairs = [
        (colours[(place + shift) % len(colours)], shape)
        for shift in range(len(colours))
        for place, shape in enumerate(shapes)
    ]
    return {f"{colour}_{shape}": (colour, shape) for colour, shape in pairs}


_CLASSES = _all_classes()
# A class keeps its number, and so its pictures, however many classes are asked for.
_CLASS_NUMBER = {name: number for number, name in enumerate(_CLASSES)}


@dataclass(frozen=True)
class ImageSpec:
    """What pictures to make. Raises ValueError for a value outside its range.

    Args:
        classes: how many classes, 1 to 100.
        per_class: pictures in each class, 1 to 1,000,000; or a tuple with one such
            number per class, in the order of ``class_names``, for imbalanced classes.
        size: width and height in pixels, 16 to 4096; or (low, high), and then width
            and height are each drawn between the two, both included.
        format: "jpeg" or "png".
        quality: of the JPEG files, 1 to 95.
        difficulty: 0 (large, clear shapes) to 1 (small, tilted, faded shapes among
            scraps of paper).
        broken: share of the files that are damaged, 0 to 1: a third each cut short,
            empty, and all black. The share holds in each class to two files.
        seed: 0 to 2**32 - 1.
    """

    classes: int = 10
    per_class: int | tuple[int, ...] = 100
    size: int | tuple[int, int] = 256
    format: str = "jpeg"
    quality: int = 90
    difficulty: float = 0.3
    broken: float = 0.0
    seed: int = 0

    kind: ClassVar[str] = "images"
    # Raise it when the bytes drawn for the same parameters change.
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checked = {
            "classes": _whole("classes", self.classes, 1, 100),
            "size": _size(self.size),
            "quality": _whole("quality", self.quality, 1, 95),
            "difficulty": _share("difficulty", self.difficulty),
            "broken": _share("broken", self.broken),
            "seed": _whole("seed", self.seed, 0, 2**32 - 1),
        }
        checked["per_class"] = _per_class(self.per_class, checked["classes"])
        if self.format not in _SUFFIX:
            raise _error("format", self.format)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, sorted: the place of a name is its label."""
        return tuple(sorted(list(_CLASSES)[: self.classes]))

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of pictures in each class, in the order of ``class_names``."""
        if isinstance(self.per_class, tuple):
            return self.per_class
        return (self.per_class,) * self.classes

    def write_into(self, folder: Path, processes: int | None = None) -> None:
        """Write all files of the set into a folder; those that exist are kept.

        Args:
            folder: an existing folder.
            processes: how many processes draw; None chooses.

        Raises:
            OSError: a file cannot be written.
        """
        for name in self.class_names:
            (folder / name).mkdir(exist_ok=True)
        if processes is None:
            processes = workers.suggest(_drawing_seconds(self))
        jobs = list(_jobs(self, folder))
        with (
            (folder / MANIFEST).open("w", encoding="utf-8", newline="\n") as manifest,
            closing(workers.run(_write_files, jobs, processes)) as results,
            tqdm(total=sum(self.counts), unit=" images", disable=None) as bar,
        ):
            for lines in results:
                manifest.writelines(lines)
                bar.update(len(lines))


@dataclass(frozen=True)
class ImageRecord:
    """One line of the manifest.

    Attributes:
        file: path below the root of the set, with forward slashes.
        class_name: name of the class, which is also the name of the folder.
        width, height: in pixels.
        boxes: left, top, right, bottom of each object in pixels; right and bottom
            are exclusive. All objects of a picture are of its class.
        fault: None, or "truncated", "empty" or "black". Width, height and boxes are
            those of the picture before it was damaged.
    """

    file: str
    class_name: str
    width: int
    height: int
    boxes: tuple[drawing.Box, ...]
    fault: str | None

    def to_line(self) -> str:
        """The record as a line of JSON."""
        fields = {
            "class" if k == "class_name" else k: v for k, v in asdict(self).items()
        }
        return json.dumps(fields) + "\n"

    @classmethod
    def from_line(cls, line: str) -> ImageRecord:
        """The record in a line of JSON."""
        fields = json.loads(line)
        fields["class_name"] = fields.pop("class")
        fields["boxes"] = tuple(tuple(box) for box in fields["boxes"])
        return cls(**fields)


def read_manifest(root: str | os.PathLike[str]) -> list[ImageRecord]:
    """Records of all pictures below ``root``, sorted by file.

    Raises:
        OSError: ``root`` holds no manifest.
    """
    with (Path(root) / MANIFEST).open(encoding="utf-8") as lines:
        return [ImageRecord.from_line(line) for line in lines]


@dataclass(frozen=True)
class Sample:
    """One picture of a set: the ``index``-th of its class.

    Args:
        spec: the set.
        class_name: one of ``spec.class_names``.
        index: 0 or more.
    """

    spec: ImageSpec
    class_name: str
    index: int

    @cached_property
    def record(self) -> ImageRecord:
        """Its line of the manifest; nothing is painted for it."""
        suffix = _SUFFIX[self.spec.format]
        return ImageRecord(
            file=f"{self.class_name}/{self.index:06d}{suffix}",
            class_name=self.class_name,
            width=self._scene.width,
            height=self._scene.height,
            boxes=tuple(piece.box for piece in self._scene.objects),
            fault=self._fault(),
        )

    def draw(self) -> Image.Image:
        """The undamaged picture, in RGB."""
        return drawing.paint(self._scene, self._generator(_PAINT))

    def file_bytes(self) -> bytes:
        """The contents of its file, damaged if the record says so."""
        fault = self.record.fault
        if fault == "empty":
            return b""
        if fault == "black":
            size = self.record.width, self.record.height
            return _encode(Image.new("RGB", size), self.spec)
        content = _encode(self.draw(), self.spec)
        # Three quarters keep the header of all but the tiniest files.
        return content[: len(content) * 3 // 4] if fault == "truncated" else content

    @cached_property
    def _scene(self) -> drawing.Scene:
        size, rng = self.spec.size, self._generator(_PLAN)
        low, high = size if isinstance(size, tuple) else (size, size)
        width, height = rng.integers(low, high + 1, size=2).tolist()
        colour, shape = _CLASSES[self.class_name]
        difficulty = self.spec.difficulty
        return drawing.plan_scene(shape, colour, (width, height), difficulty, rng)

    def _fault(self) -> str | None:
        """Multiples of the golden ratio, taken modulo 1, fill the unit interval evenly.

        So the share is right for any number of files, without a pattern such as
        every tenth.
        """
        share = self.spec.broken
        if not share:
            return None
        first = dataclasses.replace(self, index=0)
        place = (first._generator(_FAULT).random() + self.index * _GOLDEN) % 1
        return FAULTS[int(place / share * len(FAULTS))] if place < share else None

    def _generator(self, stream: int) -> np.random.Generator:
        number = _CLASS_NUMBER[self.class_name]
        return np.random.default_rng([self.spec.seed, number, self.index, stream])


def _encode(picture: Image.Image, spec: ImageSpec) -> bytes:
    buffer = io.BytesIO()
    options = {"quality": spec.quality} if spec.format == "jpeg" else {}
    picture.save(buffer, spec.format, **options)
    return buffer.getvalue()


# A job names samples of one class: spec, folder, class name, first index, end.
_Job = tuple[ImageSpec, Path, str, int, int]


def _jobs(spec: ImageSpec, folder: Path) -> Iterator[_Job]:
    # At most about 0.2 s of work, so that the end of a job is never far.
    step = max(1, min(20, 4_000_000 // _largest_side(spec) ** 2))
    for name, count in zip(spec.class_names, spec.counts, strict=True):
        for start in range(0, count, step):
            yield spec, folder, name, start, min(start + step, count)


def _write_files(job: _Job) -> list[str]:
    """Write the files of a job; returns their lines of the manifest."""
    spec, folder, name, start, end = job
    lines = []
    for index in range(start, end):
        sample = Sample(spec, name, index)
        path = folder / sample.record.file
        if not path.exists():
            # Under its own name a file is always whole, even after a kill.
            temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
            temporary.write_bytes(sample.file_bytes())
            os.replace(temporary, path)
        lines.append(sample.record.to_line())
    return lines


def _largest_side(spec: ImageSpec) -> int:
    return max(spec.size) if isinstance(spec.size, tuple) else spec.size


def _drawing_seconds(spec: ImageSpec) -> float:
    """Rough time that one process needs for the whole set, on a core of 2020."""
    return sum(spec.counts) * (1.5e-3 + 4e-8 * _largest_side(spec) ** 2)


def _error(name: str, value: Any) -> ValueError:
    return ValueError(f"{name} must be {ALLOWED[name]}, got {value!r}")


def _whole(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = operator.index(value)  # NumPy's integers are welcome too
    except TypeError:
        raise _error(name, value) from None
    if isinstance(value, bool) or not low <= number <= high:
        raise _error(name, value)
    return number


def _share(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _error(name, value) from None
    if not 0 <= number <= 1:
        raise _error(name, value)
    return number


def _size(value: Any) -> int | tuple[int, int]:
    if not isinstance(value, (tuple, list)):
        return _whole("size", value, 16, 4096)
    if len(value) != 2 or value[0] > value[1]:
        raise _error("size", value)
    low, high = (_whole("size", side, 16, 4096) for side in value)
    return low, high


def _per_class(value: Any, classes: int) -> int | tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        return _whole("per_class", value, 1, 1_000_000)
    if len(value) != classes:
        allowed = ALLOWED["per_class"]
        raise ValueError(
            f"per_class must be {allowed}, got {len(value)} numbers for "
            f"{classes} classes"
        )
    return tuple(_whole("per_class", count, 1, 1_000_000) for count in value)
