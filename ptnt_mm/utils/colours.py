"""The colours of classes and lines: RGB from 0 to 255."""

import colorsys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

# Okabe and Ito's colours without black (RGB), which colour-blind people can distinguish.
PALETTE = (
    (230, 159, 0),  # orange
    (86, 180, 233),  # sky blue
    (0, 158, 115),  # bluish green
    (204, 121, 167),  # reddish purple
    (213, 94, 0),  # vermilion
    (0, 114, 178),  # blue
    (240, 228, 66),  # yellow
)

_SHADES = (1.0, 0.65, 0.4)
_GOLDEN_RATIO = 0.618034


def class_colours(number: int) -> list[tuple[int, int, int]]:
    """Return a different RGB colour for each of ``number`` classes.

    First :data:`PALETTE`, then two darker shades of it, then :func:`more_colours`.
    """
    shades = [tuple(int(v * shade) for v in colour) for shade in _SHADES for colour in PALETTE]
    return [*shades, *islice(more_colours(), max(0, number - len(shades)))][:number]


def palette_of(dataset_meta: Mapping[str, Any], number: int) -> list[Sequence[int]]:
    """The colours of a data set, and generated ones up to ``number`` classes.

    Args:
        dataset_meta: May have ``classes`` and a ``palette``, a list of RGB colours; the hosts also
            allow 'random'. A palette of another length than ``classes`` is of a different data
            set, inherited with its class in the config, and is not used.
        number: Number of classes.
    """
    palette, classes = dataset_meta.get('palette'), dataset_meta.get('classes')
    is_own = isinstance(palette, (list, tuple)) and len(classes or palette) == len(palette)
    own = palette if is_own else ()
    return [*own, *class_colours(number)[len(own) :]]


def as_hex(colour: Sequence[int]) -> str:
    """An RGB colour as CSS and SVG write it: '#rrggbb'."""
    return '#{:02x}{:02x}{:02x}'.format(*colour)


def ink_on(colour: Sequence[int]) -> str:
    """'white' or 'black': the one that can be read on an RGB colour."""
    red, green, blue = colour
    return 'white' if 0.299 * red + 0.587 * green + 0.114 * blue < 128 else 'black'


def more_colours() -> Iterator[tuple[int, int, int]]:
    """Yield different RGB colours without end, neither very light nor very dark."""
    seen = set()
    for i in count():
        # Multiples of the golden ratio spread hues evenly, however many there are.
        hue, lightness, saturation = i * _GOLDEN_RATIO % 1, (0.5, 0.38, 0.62)[i % 3], 0.6
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
        colour = round(255 * red), round(255 * green), round(255 * blue)
        if colour not in seen:
            seen.add(colour)
            yield colour
