"""The photographs bundled with scikit-image, and the pieces that the demo data set cuts out.

The files are read directly from the installed package. `skimage.data` would download a missing
file, and making this data set must not need a network.
"""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import cv2
import numpy as np
from PIL import Image

from ptnt_mm.utils.errors import UserError

Split = Literal['train', 'val']
SPLITS: tuple[Split, ...] = ('train', 'val')

LICENSE = dict(
    id=1,
    name='Composed from photographs bundled with scikit-image, which are CC0, in the public '
    'domain or without known copyright restrictions',
    url='https://scikit-image.org/docs/stable/api/skimage.data.html',
)


Region = tuple[float, float, float, float]
"""Left, top, right, bottom of a part of a photograph, as fractions of its size."""

Duotone = tuple[tuple[int, int, int], tuple[int, int, int]]
"""The RGB values for the darkest and the brightest pixels of a grey photograph."""


class Background(NamedTuple):
    """A part of a photograph that serves as background in one split; it may be coloured."""

    file: str
    region: Region
    duotone: Duotone | None = None


_BRICK = ((62, 30, 24), (214, 160, 132))
_GRASS = ((16, 34, 8), (186, 212, 118))
_GRAVEL = ((48, 42, 38), (226, 214, 196))
_MOON = ((24, 28, 40), (196, 204, 220))
_PARK = ((18, 22, 30), (222, 228, 232))
_LEFT = (0.0, 0.0, 0.54, 1.0)
_RIGHT = (0.56, 0.0, 1.0, 1.0)
_ALL = (0.0, 0.0, 1.0, 1.0)

# The splits share no background pixel: they use different photographs, or different halves of one.
BACKGROUNDS: dict[Split, tuple[Background, ...]] = {
    'train': (
        Background('brick.png', _LEFT, _BRICK),
        Background('grass.png', _LEFT, _GRASS),
        Background('gravel.png', _LEFT, _GRAVEL),
        Background('moon.png', _LEFT, _MOON),
        Background('camera.png', _ALL, _PARK),
        Background('astronaut.png', (0.0, 0.42, 1.0, 1.0)),  # below the face
        Background('hubble_deep_field.jpg', _LEFT),
        Background('retina.jpg', (0.2, 0.15, 0.8, 0.85)),
    ),
    'val': (
        Background('brick.png', _RIGHT, _BRICK),
        Background('grass.png', _RIGHT, _GRASS),
        Background('gravel.png', _RIGHT, _GRAVEL),
        Background('moon.png', _RIGHT, _MOON),
        Background('rocket.jpg', _ALL),
        Background('chelsea.png', _ALL),
        Background('hubble_deep_field.jpg', _RIGHT),
        Background('ihc.png', _ALL),
    ),
}

# Wood for crates and sticks: the table top next to the coffee cup, in coffee.png.
WOOD: dict[Split, Region] = {'train': (0.82, 0.0, 1.0, 1.0), 'val': (0.0, 0.45, 0.12, 1.0)}

# Outline of saucer and spoon, and the ellipse of the cup's rim, in pixels of coffee.png times 1.5.
_CUP_OUTLINE = (
    *((262, 106), (226, 132), (192, 166), (158, 206), (132, 250), (120, 300), (119, 340)),
    *((127, 390), (147, 434), (176, 473), (216, 510), (263, 540), (316, 562), (370, 575)),
    *((430, 579), (490, 572), (545, 559), (589, 540), (628, 514), (663, 479), (692, 440)),
    *((709, 395), (717, 350), (714, 305), (703, 266), (688, 231), (666, 196), (636, 168)),
    *((622, 165), (635, 113), (612, 102), (596, 108)),
)
_CUP_RIM = (436 / 1.5, 167 / 1.5), (352 / 1.5, 282 / 1.5), 4.0  # in pixels of coffee.png

# Every fourth of the 24 photographed coins appears in the val split, the others in train.
_VAL_COIN_PERIOD = 4


class Cutout(NamedTuple):
    """An object cut out of a photograph: `rgb` (H, W, 3) uint8 and `mask` (H, W) bool."""

    rgb: np.ndarray
    mask: np.ndarray


@cache
def folder() -> Path:
    """Find the folder of bundled photographs.

    Raises:
        UserError: if scikit-image is not installed.
    """
    spec = importlib.util.find_spec('skimage')
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            'The demo data is composed from photographs inside scikit-image, which is not '
            'installed. Run: pip install scikit-image'
        )
    return Path(spec.submodule_search_locations[0], 'data')


@cache
def read_photograph(file: str) -> np.ndarray:
    """Read one bundled photograph as a read-only (H, W, 3) uint8 array in RGB order.

    Raises:
        UserError: if the installed scikit-image does not include the file.
    """
    try:
        # Not OpenCV: it prints a warning about the colour profile of one file.
        with Image.open(folder() / file) as opened:
            image = np.array(opened.convert('RGB'))
    except OSError as error:
        raise UserError(
            f'The demo data needs the photograph {file}, which is missing or unreadable in '
            f'{folder()}. The scikit-image wheels bundle it; run: '
            'pip install --force-reinstall scikit-image'
        ) from error
    image.setflags(write=False)
    return image


def part(file: str, region: Region) -> np.ndarray:
    """Cut a region out of a photograph, (H, W, 3) uint8."""
    image = read_photograph(file)
    height, width = image.shape[:2]
    left, top, right, bottom = np.rint(np.multiply(region, (width, height) * 2)).astype(int)
    return image[top:bottom, left:right]


@cache
def background(split: Split, index: int) -> np.ndarray:
    """Return the pixels of one row of BACKGROUNDS, tinted, as (H, W, 3) uint8."""
    file, region, duotone = BACKGROUNDS[split][index]
    pixels = part(file, region)
    return pixels if duotone is None else recolour(pixels, duotone)


def recolour(pixels: np.ndarray, duotone: Duotone) -> np.ndarray:
    """Map the brightness of (H, W, 3) uint8 pixels to a gradient between two RGB colours."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
    low, high = np.percentile(grey, (1, 99))
    position = np.clip((grey - low) / max(high - low, 1), 0, 1)[..., None]
    dark, bright = np.float32(duotone)
    return np.rint(dark + position * (bright - dark)).astype(np.uint8)


@cache
def coins(split: Split) -> tuple[Cutout, ...]:
    """Cut one split's coins out of their photograph; they are brighter than the cloth below."""
    image = read_photograph('coins.png')
    grey = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 1).astype(np.float32)
    # The kernel is wider than any coin (65 pixels), so only the unevenly lit cloth remains.
    opening = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (75, 75))
    cloth = cv2.GaussianBlur(cv2.morphologyEx(grey, cv2.MORPH_OPEN, opening), (0, 0), 15)
    raised = np.clip(grey - cloth, 0, 255).astype(np.uint8)
    _, mask = cv2.threshold(raised, 0, 255, cv2.THRESH_OTSU)
    mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8))
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return tuple(
        _cut(image, cv2.fillConvexPoly(np.zeros_like(mask), cv2.convexHull(contour), 1))
        for number, contour in enumerate(contours, start=1)
        if (number % _VAL_COIN_PERIOD == 0) == (split == 'val')
    )


@cache
def cup_cutout() -> tuple[Cutout, np.ndarray]:
    """Cut out the coffee cup with its saucer; also return the mask (H, W) of the glazed pixels."""
    image = read_photograph('coffee.png')
    outline = np.rint(np.float32(_CUP_OUTLINE) / 1.5).astype(np.int32)
    inside_rim = cv2.ellipse(np.zeros(image.shape[:2], np.uint8), _CUP_RIM, 1, cv2.FILLED)
    mask = cv2.fillPoly(inside_rim.copy(), [outline], 1)
    return _cut(image, mask), inside_rim[bounds(mask)] == 0


def _cut(image: np.ndarray, mask: np.ndarray) -> Cutout:
    box = bounds(mask)
    return Cutout(image[box], mask[box] > 0)


def bounds(mask: np.ndarray) -> tuple[slice, slice]:
    """Return the rows and columns of the bounding box of a uint8 mask (H, W)."""
    left, top, width, height = cv2.boundingRect(mask)
    return np.s_[top : top + height, left : left + width]
