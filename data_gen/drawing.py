"""Draws the pictures: shapes cut from coloured paper, lying on textured paper.

Drawing has two steps. ``plan_scene`` decides what lies where and is cheap; boxes come
from it. ``paint`` turns the plan into pixels and is where the time goes. Each step
takes its own random generator, so boxes can be had without painting.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

Box = tuple[int, int, int, int]
Colour = tuple[int, int, int]

# Hue in degrees, saturation and value in 0..1.
COLOURS = {
    "red": (356, 0.80, 0.84),
    "blue": (217, 0.76, 0.82),
    "yellow": (50, 0.86, 0.97),
    "green": (132, 0.68, 0.60),
    "purple": (276, 0.58, 0.70),
    "orange": (25, 0.88, 0.95),
    "cyan": (186, 0.72, 0.84),
    "pink": (326, 0.46, 0.96),
    "white": (45, 0.04, 0.97),
    "black": (230, 0.15, 0.14),
}

# Pairs of paper colours between which a background runs; of middle brightness, so
# that white and black shapes stand out too.
_PAPERS: tuple[tuple[Colour, Colour], ...] = (
    ((205, 186, 158), (164, 146, 124)),  # sand
    ((154, 170, 178), (112, 130, 144)),  # slate
    ((172, 182, 156), (128, 146, 122)),  # sage
    ((190, 170, 176), (144, 128, 146)),  # heather
    ((196, 166, 146), (150, 126, 114)),  # clay
    ((184, 186, 184), (140, 146, 148)),  # fog
)
_SHADOW_COLOUR = (24, 22, 30)


def _polar(radii: np.ndarray) -> np.ndarray:
    """Outline, shape (N, 2), with these radii at equal angles from the top on."""
    angles = np.linspace(0, 2 * np.pi, len(radii), endpoint=False)
    return np.stack([radii * np.sin(angles), -radii * np.cos(angles)], axis=1)


def _heart() -> np.ndarray:
    t = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([x, -y], axis=1) / 17


def _moon() -> np.ndarray:
    outer = np.linspace(np.radians(50), np.radians(310), 60)
    inner = np.linspace(np.radians(285), np.radians(75), 40)
    edge = np.stack([np.cos(outer), np.sin(outer)], axis=1)
    bite = np.stack([np.cos(inner), np.sin(inner)], axis=1) * 0.79 + [0.43, 0]
    return np.concatenate([edge, bite])


def _cross() -> np.ndarray:
    a, b = 0.32, 0.95
    corner = [(-a, -b), (a, -b), (a, -a), (b, -a), (b, a), (a, a)]
    return np.array(corner + [(-x, -y) for x, y in corner])


def _arrow() -> np.ndarray:
    right = [(0, -1), (0.78, -0.12), (0.30, -0.12), (0.30, 0.92)]
    return np.array(right + [(-x, y) for x, y in reversed(right[1:])])


_PETALS = np.cos(5 * np.linspace(0, 2 * np.pi, 90, endpoint=False))

# Outlines that fit a circle of radius 1, y pointing down.
SHAPES: dict[str, np.ndarray] = {
    "circle": _polar(np.full(72, 0.92)),
    "square": np.array([(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)]),
    "triangle": _polar(np.ones(3)),
    "star": _polar(np.tile([1.0, 0.44], 5)),
    "ring": _polar(np.full(72, 0.95)),
    "cross": _cross(),
    "heart": _heart(),
    "moon": _moon(),
    "arrow": _arrow(),
    "flower": _polar(0.72 + 0.26 * _PETALS),
}
_HOLES: dict[str, np.ndarray] = {"ring": _polar(np.full(72, 0.52))}


@dataclass(frozen=True)
class Piece:
    """One cut piece of paper.

    ``outline`` and ``hole`` are float arrays of shape (N, 2): x and y in pixels of the
    picture, y pointing down.
    """

    outline: np.ndarray
    colour: Colour
    hole: np.ndarray | None = None

    @property
    def box(self) -> Box:
        """Left, top, right, bottom in whole pixels; right and bottom are exclusive."""
        left, top = np.floor(self.outline.min(axis=0)).astype(int).tolist()
        right, bottom = np.ceil(self.outline.max(axis=0)).astype(int).tolist()
        return left, top, right, bottom


@dataclass(frozen=True)
class Scene:
    """What lies where: ``objects`` carry the class, ``scraps`` only distract."""

    width: int
    height: int
    objects: tuple[Piece, ...]
    scraps: tuple[Piece, ...]
    difficulty: float
    shadow: float = 0.42


def plan_scene(
    shape: str,
    colour: str,
    size: tuple[int, int],
    difficulty: float,
    rng: np.random.Generator,
) -> Scene:
    """Decide what lies where in one picture.

    Args:
        shape: a key of ``SHAPES``.
        colour: a key of ``COLOURS``.
        size: width and height in pixels.
        difficulty: 0 (clear) to 1 (small, tilted, faded, among many scraps).
        rng: the only source of chance.

    Returns:
        A scene with one to four objects, all inside the picture, none touching
        another, and up to 16 scraps below them.
    """
    objects: list[Piece] = []
    wanted = int(rng.choice([1, 2, 3, 4], p=[0.45, 0.30, 0.15, 0.10]))
    for _ in range(wanted):
        radius = _object_radius(size, wanted, difficulty, rng)
        tint = _tint(COLOURS[colour], difficulty, rng)
        piece = _place_object(shape, radius, tint, size, difficulty, objects, rng)
        if piece is not None:
            objects.append(piece)
    count = round(difficulty * rng.uniform(8, 16))
    scraps = tuple(_scrap(size, difficulty, rng) for _ in range(count))
    return Scene(*size, tuple(objects), scraps, difficulty)


def _object_radius(
    size: tuple[int, int], wanted: int, difficulty: float, rng: np.random.Generator
) -> float:
    low, high = (0.27, 0.40) if wanted == 1 else (0.17, 0.27)
    return min(size) * rng.uniform(low, high) * (1 - 0.45 * difficulty)


def _tint(
    hsv: tuple[float, float, float], difficulty: float, rng: np.random.Generator
) -> Colour:
    hue, saturation, value = hsv
    hue += rng.uniform(-1, 1) * (4 + 10 * difficulty)
    saturation *= 1 - rng.uniform(0, 0.1 + 0.4 * difficulty)
    value *= 1 - rng.uniform(0, 0.08 + 0.17 * difficulty)
    red, green, blue = colorsys.hsv_to_rgb(hue / 360 % 1, saturation, value)
    return round(255 * red), round(255 * green), round(255 * blue)


def _turn(points: np.ndarray, angle: float) -> np.ndarray:
    x, y = points.T
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=1)


def _place_object(
    shape: str,
    radius: float,
    tint: Colour,
    size: tuple[int, int],
    difficulty: float,
    others: list[Piece],
    rng: np.random.Generator,
) -> Piece | None:
    """A place inside the picture, clear of the others; None when 20 tries find none."""
    angle = rng.uniform(-1, 1) * np.radians(12 + 168 * difficulty)
    outline = _turn(SHAPES[shape], angle) * radius
    hole = _turn(_HOLES[shape], angle) * radius if shape in _HOLES else None
    margin = 0.02 * min(size)
    low = margin - outline.min(axis=0)
    high = np.array(size) - margin - outline.max(axis=0)
    for _ in range(20):
        centre = rng.uniform(low, high)
        moved_hole = None if hole is None else hole + centre
        piece = Piece(outline + centre, tint, moved_hole)
        if all(_apart(piece.box, other.box) for other in others):
            return piece
    return None


def _apart(a: Box, b: Box) -> bool:
    return a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def _scrap(size: tuple[int, int], difficulty: float, rng: np.random.Generator) -> Piece:
    """An uneven corner of paper, unlike any of the shapes, anywhere in the picture."""
    radius = min(size) * rng.uniform(0.03, 0.05 + 0.07 * difficulty)
    radii = rng.uniform(0.35, 1.0, size=int(rng.integers(4, 7)))
    stretched = _polar(radii) * [1, rng.uniform(0.3, 1)]
    outline = _turn(stretched, rng.uniform(0, 2 * np.pi)) * radius
    hsv = (rng.uniform(0, 360), rng.uniform(0.05, 0.75) * difficulty, 0.80)
    return Piece(outline + rng.uniform((0, 0), size), _tint(hsv, difficulty, rng))


def paint(scene: Scene, rng: np.random.Generator) -> Image.Image:
    """Paint a scene.

    Returns:
        An RGB picture of ``scene.width`` x ``scene.height`` pixels.
    """
    canvas = _background(scene, rng)
    for piece in scene.scraps + scene.objects:
        _paint_piece(canvas, piece, scene.shadow)
    return _add_texture(canvas, scene.difficulty, rng)


def _background(scene: Scene, rng: np.random.Generator) -> Image.Image:
    """A soft gradient between two paper colours, given by its corners."""
    light, dark = np.array(_PAPERS[rng.integers(len(_PAPERS))], dtype=float)
    mix = rng.permutation(np.array([0.0, 0.35, 0.65, 1.0])).reshape(2, 2, 1)
    corners = light * (1 - mix) + dark * mix + rng.uniform(-14, 14, size=3)
    corners = Image.fromarray(corners.clip(0, 255).astype(np.uint8))
    return corners.resize((scene.width, scene.height), Image.Resampling.BICUBIC)


def _paint_piece(canvas: Image.Image, piece: Piece, shadow: float) -> None:
    left, top, right, bottom = piece.box
    mask = _mask(piece)
    reach = max(2, round(0.05 * max(mask.size)))
    if shadow > 0:
        blurred = _blurred(mask, reach, shadow)
        canvas.paste(_SHADOW_COLOUR, (left - reach, top - reach), blurred)
    canvas.paste(_shaded(piece.colour, mask.size), (left, top), mask)


def _mask(piece: Piece) -> Image.Image:
    """Coverage of each pixel of the piece's box, 0..255, with smooth edges."""
    left, top, right, bottom = piece.box
    width, height = right - left, bottom - top
    # Drawn larger and averaged down; less so for large pieces, to bound the memory.
    scale = 4 if max(width, height) <= 512 else 2
    mask = Image.new("L", (width * scale, height * scale))
    draw = ImageDraw.Draw(mask)
    for points, value in ((piece.outline, 255), (piece.hole, 0)):
        if points is not None:
            local = (points - (left, top)) * scale
            draw.polygon(local.ravel().tolist(), fill=value)
    return mask.reduce(scale)


def _blurred(mask: Image.Image, reach: int, opacity: float) -> Image.Image:
    """The mask with a rim of 2 * ``reach`` pixels, blurred at a quarter of its size."""
    width, height = mask.width + 4 * reach, mask.height + 4 * reach
    wide = Image.new("L", (width, height))
    weaker = (np.arange(256) * opacity).astype(np.uint8).tolist()
    wide.paste(mask.point(weaker), (2 * reach, 2 * reach))
    small = wide.reduce(4).filter(ImageFilter.GaussianBlur(max(1, reach / 4)))
    return small.resize((width, height), Image.Resampling.BILINEAR)


def _shaded(colour: Colour, size: tuple[int, int]) -> Image.Image:
    """The colour under light that falls from the top left."""
    light = np.array([[1.12, 1.0], [1.0, 0.86]])[:, :, None]
    corners = (np.array(colour) * light).clip(0, 255).astype(np.uint8)
    return Image.fromarray(corners).resize(size, Image.Resampling.BILINEAR)


def _add_texture(
    canvas: Image.Image, difficulty: float, rng: np.random.Generator
) -> Image.Image:
    """Light and dark patches, paper fibres and film grain over everything."""
    size = canvas.size
    patch = max(size) / 5
    # Some papers are rougher than others: file sizes differ, as those of photos do.
    rough = rng.uniform(0.4, 1.5)
    # The largest grey level that each noise adds; their sum fits int16.
    texture = _noise(size, (patch, patch), rng) * np.int16(12 + 20 * difficulty)
    texture += _noise(size, (14, 2.5), rng) * np.int16(rough * (8 + 8 * difficulty))
    texture += _noise(size, (1, 1), rng) * np.int16(rough * (9 + 12 * difficulty))
    texture >>= 7
    pixels = np.asarray(canvas).astype(np.int16)
    pixels += texture[:, :, None]
    np.clip(pixels, 0, 255, out=pixels)
    return Image.fromarray(pixels.astype(np.uint8))


def _noise(
    size: tuple[int, int], cell: tuple[float, float], rng: np.random.Generator
) -> np.ndarray:
    """Smooth noise, int16, shape (height, width), -128..127; ``cell`` is its grain."""
    across, down = (max(2, round(n / c)) for n, c in zip(size, cell, strict=True))
    dots = np.frombuffer(rng.bytes(across * down), dtype=np.uint8)
    dots = Image.fromarray(dots.reshape(down, across))
    if dots.size != size:
        dots = dots.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(dots).astype(np.int16) - np.int16(128)
