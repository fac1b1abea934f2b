"""Objects and clutter as pictures with transparency, drawn or cut out of photographs.

Every function in OBJECTS and CLUTTER has the signature `(rng, split, size, light) -> Sprite`.
`size` is the square root of the area, in pixels, at which the sprite will be shown. `light` is the
unit vector towards the lamp (x right, y down, z towards the viewer). A function may return a sprite
of a different scale; `fit` brings it to size.
"""

from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np

from ptnt_mm.workbench.data.demo import photographs
from ptnt_mm.workbench.data.demo.photographs import Split


class Sprite(NamedTuple):
    """A picture with transparency, float32 in [0, 1].

    `rgb` (H, W, 3) is premultiplied by `alpha` (H, W), so resizing leaves no dark edge.
    """

    rgb: np.ndarray
    alpha: np.ndarray


Maker = Callable[[np.random.Generator, Split, float, np.ndarray], Sprite]

_METALS = (
    ((56, 34, 8), (255, 216, 110)),  # gold
    ((40, 44, 52), (236, 240, 246)),  # silver
    ((52, 22, 12), (240, 156, 110)),  # copper
)
_BALL_COLOURS = (
    ((222, 46, 52), (250, 248, 240)),
    ((30, 96, 206), (252, 214, 60)),
    ((24, 150, 84), (250, 248, 240)),
    ((240, 120, 28), (36, 60, 130)),
    ((150, 56, 170), (160, 224, 226)),
    ((226, 66, 140), (255, 236, 120)),
)
_WOODS = (
    ((92, 52, 24), (255, 196, 124)),
    ((84, 54, 36), (236, 172, 118)),
    ((112, 80, 46), (255, 226, 170)),
)
_LEAVES = (
    ((20, 50, 10), (150, 190, 70)),
    ((70, 34, 8), (214, 140, 50)),
    ((44, 40, 14), (170, 160, 80)),
)
_PAPER = ((30, 28, 30), (238, 232, 214))


def fit(sprite: Sprite, size: float, angle: float = 0.0, mirror: bool = False) -> Sprite:
    """Rotate a sprite by `angle` degrees and scale it to an area of `size` ** 2 pixels."""
    height, width = sprite.alpha.shape
    diagonal = int(np.ceil(np.hypot(height, width))) + 2
    turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)
    turn[:, 2] += ((diagonal - width) / 2, (diagonal - height) / 2)
    layers = cv2.warpAffine(np.dstack(sprite), turn, (diagonal, diagonal), flags=cv2.INTER_LINEAR)
    scale = size / np.sqrt(max(float(layers[..., 3].sum()), 1.0))
    side = max(2, round(diagonal * scale))
    interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    layers = np.clip(cv2.resize(layers, (side, side), interpolation=interpolation), 0, 1)
    layers = layers[:, ::-1] if mirror else layers
    layers = layers[photographs.bounds((layers[..., 3] > 0.02).astype(np.uint8))]
    alpha = layers[..., 3]
    return Sprite(np.minimum(layers[..., :3], alpha[..., None]), alpha)


def coin(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Return a photographed coin in gold, silver or copper, lit from one side."""
    coins = photographs.coins(split)
    # Take large coins from the larger half: enlarging a small coin would blur it.
    if size > 60:
        coins = sorted(coins, key=lambda cutout: cutout.mask.sum())[len(coins) // 2 :]
    cutout = coins[rng.integers(len(coins))]
    rgb = photographs.recolour(cutout.rgb, rng.choice(_METALS)) / np.float32(255)
    height, width = cutout.mask.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].astype(np.float32)
    return _matte(rgb * (1 + 0.22 * (x * light[0] + y * light[1]))[..., None], cutout.mask)


def cup(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Return the only photographed coffee cup with its glaze in a different colour."""
    cutout, glazed = photographs.cup_cutout()
    hsv = cv2.cvtColor(cutout.rgb.astype(np.float32) / 255, cv2.COLOR_RGB2HSV)
    hsv[..., 0] = np.where(glazed, (hsv[..., 0] + rng.uniform(0, 360)) % 360, hsv[..., 0])
    hsv[..., 1] = np.where(glazed, hsv[..., 1] * rng.uniform(0.4, 0.85), hsv[..., 1])
    hsv[..., 2] **= rng.uniform(0.65, 1.0)
    return _matte(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), cutout.mask)


def ball(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Draw a ball with panels of two colours, randomly rotated, with a photographed texture."""
    side = 2 * max(16, round(size))
    y, x = np.mgrid[-1.04 : 1.04 : side * 1j, -1.04 : 1.04 : side * 1j].astype(np.float32)
    radius_squared = x * x + y * y
    normal = np.dstack([x, y, np.sqrt(np.clip(1 - radius_squared, 0, 1))])
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0].astype(np.float32)
    colour = _panels(rng, normal @ rotation)
    grain = _texture(rng, photographs.background(split, _GRAVEL_ROW), side).mean(-1, keepdims=True)
    colour = colour * (0.82 + 0.3 * grain)
    diffuse = np.clip(normal @ light, 0, None)[..., None]
    halfway = light + np.float32([0, 0, 1])
    gloss = np.clip(normal @ (halfway / np.linalg.norm(halfway)), 0, None)[..., None] ** 40
    rgb = colour * (0.34 + 0.72 * diffuse) + rng.uniform(0.2, 0.6) * gloss
    return _matte(rgb, radius_squared <= 1)


def crate(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Draw a wooden crate of photographed planks, seen from above with three faces visible."""
    yaw, pitch = np.radians(rng.uniform(18, 72)), np.radians(rng.uniform(24, 42))
    edges = rng.uniform(0.75, 1.2, 3)  # width, height, depth
    # Columns: directions of the crate's own axes (right, up, front) in the picture.
    axes = np.array(
        [
            [np.cos(yaw), 0.0, -np.sin(yaw)],
            [np.sin(yaw) * np.sin(pitch), -np.cos(pitch), np.cos(yaw) * np.sin(pitch)],
            [np.sin(yaw) * np.cos(pitch), np.sin(pitch), np.cos(yaw) * np.cos(pitch)],
        ]
    )
    side = 2 * max(24, round(1.5 * size))
    vectors = (axes[:2] * edges).T * side * 0.42 / np.sqrt(edges[0] ** 2 + edges[2] ** 2)
    right, up, front = vectors
    corner = np.float64([side / 2, side / 2]) - (right + up + front) / 2
    wood = _wood(rng, split)
    canvas, mask = np.zeros((side, side, 3), np.float32), np.zeros((side, side), np.uint8)
    # The three visible faces (top, right, front), each as a corner and two edges.
    for axis, origin, along, across in (
        (1, corner + up, right, front),
        (0, corner + right, front, up),
        (2, corner + front, right, up),
    ):
        facing = 0.42 + 0.7 * max(0.0, float(axes[:, axis] @ light))
        face = _planks(rng, wood) * np.float32(facing)
        _put_face(canvas, mask, face, np.float32([origin, origin + along, origin + across]))
    return _matte(canvas, mask > 0)


def stick(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Draw a thin wooden stick (clutter)."""
    length = 2 * max(24, round(4 * size))
    width = max(4, round(length * rng.uniform(0.035, 0.07)))
    grain = _texture(rng, _wood(rng, split).transpose(1, 0, 2), length)[:width]
    round_side = np.sin(np.linspace(0.25, np.pi - 0.1, width, dtype=np.float32))[:, None, None]
    lit = 0.7 + 0.3 * float(light[2])
    return _matte(grain * (0.4 + 0.6 * round_side) * lit, np.ones((width, length), bool))


def leaf(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Draw a pointed leaf with its midrib (clutter)."""
    length = 2 * max(16, round(1.8 * size))
    x = np.linspace(-1, 1, length, dtype=np.float32)[None]
    y = np.linspace(-0.5, 0.5, length // 2, dtype=np.float32)[:, None]
    half_width = rng.uniform(0.24, 0.42) * (1 - x * x) * (1 - 0.4 * x)
    grass = photographs.recolour(photographs.background(split, _GRASS_ROW), rng.choice(_LEAVES))
    rgb = _texture(rng, grass, length)[: length // 2] * 0.6 + 0.16
    rib = np.clip(1 - np.abs(y) * 30, 0, 1)
    fold = 1 + 0.25 * np.sign(y) * float(light[1])
    return _matte(rgb * (fold - 0.35 * rib)[..., None], np.abs(y) < half_width)


def scrap(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Cut a scrap out of a photographed page (clutter)."""
    side = 2 * max(16, round(1.3 * size))
    angles = np.sort(rng.uniform(0, 2 * np.pi, 4) * 0.25 + np.arange(4) * np.pi / 2)
    mask = _polygon(angles, rng.uniform(0.6, 1, (4, 1)), side)
    page = photographs.recolour(photographs.read_photograph('page.png'), _PAPER)
    return _matte(_texture(rng, page, side) * (0.75 + 0.25 * float(light[2])), mask)


def shard(rng: np.random.Generator, split: Split, size: float, light: np.ndarray) -> Sprite:
    """Cut a triangular shard out of a photographed brick wall (clutter)."""
    side = 2 * max(16, round(1.6 * size))
    mask = _polygon(rng.uniform(0, 0.6, 3) + np.arange(3) * 2 * np.pi / 3, 1, side)
    brick = _texture(rng, photographs.background(split, _BRICK_ROW), side)
    return _matte(brick * (0.7 + 0.3 * float(light[2])), mask)


# In the order of category ids, from 1.
OBJECTS: dict[str, Maker] = {'ball': ball, 'coin': coin, 'crate': crate, 'cup': cup}
CLUTTER: dict[str, Maker] = {'stick': stick, 'leaf': leaf, 'scrap': scrap, 'shard': shard}

# Photographed objects are rotated by up to this many degrees either way. Drawn objects are rotated
# in 3D when they are drawn.
TURNS: dict[str, float] = {'coin': 180.0, 'cup': 25.0}

# Rows of BACKGROUNDS, the same in both splits, that also serve as textures.
_BRICK_ROW, _GRASS_ROW, _GRAVEL_ROW = 0, 1, 2


def _matte(rgb: np.ndarray, mask: np.ndarray) -> Sprite:
    """Create a sprite from a picture and a binary mask: with a soft edge, transparent outside."""
    mask = np.pad(mask.astype(np.float32), 2)
    rgb = np.pad(rgb.astype(np.float32), ((2, 2), (2, 2), (0, 0)), mode='edge')
    # Move the edge slightly inwards: the outermost pixels of a cutout still show its background.
    alpha = np.clip(2 * cv2.GaussianBlur(mask, (0, 0), 0.8) - 0.9, 0, 1)
    return Sprite(np.clip(rgb, 0, 1) * alpha[..., None], alpha)


def _texture(rng: np.random.Generator, photograph: np.ndarray, side: int) -> np.ndarray:
    """Cut a random square out of a photograph, as (side, side, 3) float32 in [0, 1]."""
    extent = min(*photograph.shape[:2], max(side, 48))
    top, left = (rng.integers(0, length - extent + 1) for length in photograph.shape[:2])
    square = photograph[top : top + extent, left : left + extent]
    resized = cv2.resize(square, (side, side), interpolation=cv2.INTER_LINEAR)
    return resized.astype(np.float32) / 255


def _polygon(angles: np.ndarray, radius: np.ndarray | float, side: int) -> np.ndarray:
    """Draw a polygon around the centre of a mask (side, side); a radius of 1 nearly fills it."""
    corners = np.stack([np.cos(angles), np.sin(angles)], -1) * radius
    points = np.rint((corners * 0.48 + 0.5) * side).astype(np.int32)
    return cv2.fillConvexPoly(np.zeros((side, side), np.uint8), points, 1) > 0


def _panels(rng: np.random.Generator, point: np.ndarray) -> np.ndarray:
    """Colour points (H, W, 3) of the unit sphere like the panels and caps of a beach ball."""
    first, second = np.float32(rng.choice(_BALL_COLOURS)) / 255
    panels = rng.choice([4, 6, 8])
    turn = (np.arctan2(point[..., 1], point[..., 0]) / (2 * np.pi) + 0.5) * panels
    in_first = (np.floor(turn).astype(int) % 2 == 0)[..., None]
    colour = np.where(in_first, first, second)
    seam = np.abs(turn - np.rint(turn)) * np.hypot(point[..., 0], point[..., 1]) < 0.02 * panels / 6
    cap = (np.abs(point[..., 2]) > 0.94)[..., None]
    return np.where(cap, first, colour * np.where(seam, 0.7, 1.0)[..., None]).astype(np.float32)


def _wood(rng: np.random.Generator, split: Split) -> np.ndarray:
    table = photographs.part('coffee.png', photographs.WOOD[split])
    return photographs.recolour(table, rng.choice(_WOODS))


def _planks(rng: np.random.Generator, wood: np.ndarray) -> np.ndarray:
    """Draw one face of a crate, (96, 96, 3) float32."""
    side, frame, count = 96, 13, int(rng.integers(3, 6))
    face = _texture(rng, wood, side) * 0.82
    for edge in np.linspace(frame, side - frame, count + 1).astype(int):
        face[edge - 1 : edge + 2] *= 0.35
    beam = _texture(rng, wood, side)
    for bar in (np.s_[:frame], np.s_[-frame:], np.s_[:, :frame], np.s_[:, -frame:]):
        face[bar] = beam[bar]
    cv2.rectangle(face, (frame, frame), (side - 1 - frame, side - 1 - frame), (0.1, 0.07, 0.04), 2)
    cv2.rectangle(face, (0, 0), (side - 1, side - 1), (0.12, 0.08, 0.05), 2)
    for x in (frame // 2, side - frame // 2):
        for y in (frame // 2, side - frame // 2):
            cv2.circle(face, (x, y), 2, (0.15, 0.14, 0.14), cv2.FILLED)
    return face


def _put_face(canvas: np.ndarray, mask: np.ndarray, face: np.ndarray, corners: np.ndarray) -> None:
    """Draw `face` onto the parallelogram given by `corners` (3, 2): origin, along, across."""
    side = face.shape[0]
    source = np.float32([[0, 0], [side - 1, 0], [0, side - 1]])
    warp = cv2.getAffineTransform(source, corners)
    size = mask.shape[::-1]
    face = cv2.GaussianBlur(face, (0, 0), max(0.01, 0.35 * side / size[0]))
    laid = cv2.warpAffine(face, warp, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    covered = cv2.warpAffine(np.ones((side, side), np.uint8), warp, size, flags=cv2.INTER_NEAREST)
    canvas[covered > 0] = laid[covered > 0]
    mask |= covered
