"""Compose scenes: objects, shadows and clutter on a photograph, with the owner of each pixel."""

from typing import NamedTuple

import cv2
import numpy as np

from ptnt_mm.workbench.data.demo import photographs, sprites
from ptnt_mm.workbench.data.demo.photographs import SPLITS, Split
from ptnt_mm.workbench.data.demo.sprites import Sprite

CLASSES: tuple[str, ...] = tuple(sprites.OBJECTS)

# (width, height). Most have the size that the demo trains at. The others, some of them portrait or
# odd, make sure that nothing relies on one size.
_IMAGE_SIZES = (
    *[(256, 192)] * 8,
    *[(192, 256)] * 2,
    (320, 240),
    (224, 224),
    (288, 180),
    (251, 187),
    (213, 277),
    (300, 200),
)

# Ranges of an object's side (square root of its area, in pixels) within COCO's small, medium and
# large, and how many of each a scene may hold: from the first number to one less than the second.
# At 18 pixels the classes can still be distinguished.
_SIZE_RANGES = ((18.0, 30.0), (40.0, 90.0), (108.0, 140.0))
_COUNTS = ((0, 3), (1, 5), (0, 2))

# An object is placed only if at least these shares of every object stay visible and inside the
# picture.
_MIN_VISIBLE = 0.7
_MIN_INSIDE = 0.9
_ATTEMPTS = 25


class Scene(NamedTuple):
    """A composed picture.

    `image` is (H, W, 3) uint8 RGB. `owner`, (H, W) int16, is 0 for background and clutter and
    otherwise 1 + the index of the object that the pixel shows. `labels` are indices into CLASSES.
    """

    image: np.ndarray
    owner: np.ndarray
    labels: tuple[int, ...]


def compose(seed: int, split: Split, index: int) -> Scene:
    """Compose scene number `index` of a split. Equal arguments give equal scenes."""
    rng = np.random.default_rng([seed, SPLITS.index(split), index])
    table = _Table(rng, split)
    for _ in range(rng.integers(1, 4)):
        table.add_clutter()
    sides = [
        rng.uniform(*limits)
        for limits, counts in zip(_SIZE_RANGES, _COUNTS, strict=True)
        for _ in range(rng.integers(*counts))
    ]
    # Large objects first, so that they do not cover small ones.
    for side in sorted(sides, reverse=True):
        table.add_object(side)
    for _ in range(rng.integers(0, 2)):
        table.add_clutter()
    return Scene(table.developed(), table.owner, tuple(table.labels))


class _Table:
    """The table top on which one scene is laid out."""

    def __init__(self, rng: np.random.Generator, split: Split) -> None:
        self.rng = rng
        self.split = split
        azimuth, height = rng.uniform(0, 2 * np.pi), rng.uniform(0.6, 0.85)
        reach = np.sqrt(1 - height**2)
        # The lamp hangs above, and the y axis points down.
        self.light = np.float32([np.cos(azimuth) * reach, -abs(np.sin(azimuth)) * reach, height])
        self.canvas = _background(rng, split)
        self.owner = np.zeros(self.canvas.shape[:2], np.int16)
        self.labels: list[int] = []
        self.full_areas: list[int] = []

    def add_object(self, side: float) -> None:
        """Place one object of a random class, if there is a spot where all stay visible enough."""
        label = int(self.rng.integers(len(CLASSES)))
        name = CLASSES[label]
        # At most 0.72 of the picture's shorter side, so that there is room to place it.
        side = min(side, 0.72 * min(self.owner.shape))
        made = sprites.OBJECTS[name](self.rng, self.split, side, self.light)
        turn = sprites.TURNS.get(name, 0.0)
        # Not drawn objects: they are already lit, and mirroring would move the light.
        mirror = name in sprites.TURNS and bool(self.rng.integers(2))
        sprite = sprites.fit(made, side, self.rng.uniform(-turn, turn), mirror)
        if self._place(sprite, _MIN_INSIDE, len(self.labels) + 1):
            self.labels.append(label)
            self.full_areas.append(int((sprite.alpha > 0.5).sum()))

    def add_clutter(self) -> None:
        """Place one piece of clutter, if all objects stay visible enough."""
        side = self.rng.uniform(14, 34)
        maker = self.rng.choice(list(sprites.CLUTTER.values()))
        made = maker(self.rng, self.split, side, self.light)
        self._place(sprites.fit(made, side, self.rng.uniform(-180, 180)), 0.3, owner=0)

    def developed(self) -> np.ndarray:
        """Simulate the photograph: exposure, colour cast, a little blur and noise, as uint8."""
        rng = self.rng
        image = np.clip(self.canvas, 0, 1) ** rng.uniform(0.8, 1.2)
        image = image * rng.uniform(0.85, 1.1) * rng.uniform(0.94, 1.06, 3).astype(np.float32)
        image = cv2.GaussianBlur(image, (0, 0), rng.uniform(0.1, 0.6))
        image = image + rng.normal(0, rng.uniform(0.002, 0.015), image.shape)
        return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)

    def _place(self, sprite: Sprite, min_inside: float, owner: int) -> bool:
        """Lay a sprite where it and the objects below it stay visible enough, if there is a spot.

        Args:
            sprite: The sprite.
            min_inside: The least share of it that is inside the picture.
            owner: The number of its pixels.
        """
        solid, objects = sprite.alpha > 0.5, len(self.labels) + 1
        (rows, columns), (height, width) = self.owner.shape, solid.shape
        visible = np.bincount(self.owner.ravel(), minlength=objects)
        for _ in range(_ATTEMPTS):
            left = int(self.rng.integers(-(width // 5), max(columns - width + width // 5, 1)))
            top = int(self.rng.integers(-(height // 5), max(rows - height + height // 5, 1)))
            scene_part, sprite_part = _overlap(self.owner.shape, solid.shape, left, top)
            inside = solid[sprite_part]
            covered = np.bincount(self.owner[scene_part][inside], minlength=objects)
            is_visible = (visible - covered)[1:] >= _MIN_VISIBLE * np.array(self.full_areas)
            if inside.sum() >= min_inside * solid.sum() and is_visible.all():
                self._cast_shadow(sprite.alpha, left, top)
                self.canvas[scene_part] *= 1 - sprite.alpha[sprite_part][..., None]
                self.canvas[scene_part] += sprite.rgb[sprite_part]
                self.owner[scene_part][inside] = owner
                return True
        return False

    def _cast_shadow(self, alpha: np.ndarray, left: int, top: int) -> None:
        """Darken the pixels below a sprite, on the side away from the lamp."""
        side = float(np.sqrt(alpha.sum()))
        soft = max(0.8, 0.05 * side)
        border = int(np.ceil(3 * soft))
        shadow = cv2.GaussianBlur(np.pad(alpha, border), (0, 0), soft) * 0.55
        left -= border + round(float(self.light[0]) * 0.14 * side)
        top -= border + round(float(self.light[1]) * 0.14 * side)
        scene_part, shadow_part = _overlap(self.owner.shape, shadow.shape, left, top)
        self.canvas[scene_part] *= 1 - shadow[shadow_part][..., None]


def _background(rng: np.random.Generator, split: Split) -> np.ndarray:
    """Crop, mirror and blur a background photograph, as (H, W, 3) float32 in [0, 1]."""
    width, height = rng.choice(_IMAGE_SIZES).tolist()
    row = int(rng.integers(len(photographs.BACKGROUNDS[split])))
    photograph = photographs.background(split, row)
    rows, columns = photograph.shape[:2]
    zoom = min(rng.uniform(0.7, 1.6), rows / height, columns / width)
    crop_height, crop_width = int(height * zoom), int(width * zoom)
    top = int(rng.integers(rows - crop_height + 1))
    left = int(rng.integers(columns - crop_width + 1))
    crop = photograph[top : top + crop_height, left : left + crop_width]
    if rng.integers(2):
        crop = crop[:, ::-1]
    crop = cv2.resize(np.ascontiguousarray(crop), (width, height), interpolation=cv2.INTER_AREA)
    # Slightly blurred and with less contrast, so that the objects stand out.
    crop = cv2.GaussianBlur(crop.astype(np.float32) / 255, (0, 0), rng.uniform(0.3, 1.4))
    return 0.5 + (crop - 0.5) * np.float32(rng.uniform(0.6, 0.95))


def _overlap(
    scene: tuple[int, ...], sprite: tuple[int, ...], left: int, top: int
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return where a scene (H, W) and a sprite (h, w) at (left, top) overlap, as slices of both."""
    y0, y1 = max(top, 0), min(top + sprite[0], scene[0])
    x0, x1 = max(left, 0), min(left + sprite[1], scene[1])
    y1, x1 = max(y0, y1), max(x0, x1)
    return np.s_[y0:y1, x0:x1], np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
