"""The colours of classes and lines."""

from itertools import cycle

# Okabe and Ito's colours without black (RGB), which colour-blind people can tell apart.
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


def class_colours(number: int) -> list[tuple[int, int, int]]:
    """Colours for so many classes, RGB: ours, then the same ones darker, and darker again."""
    return [
        tuple(int(value * _SHADES[index // len(PALETTE) % len(_SHADES)]) for value in colour)
        for index, colour in zip(range(number), cycle(PALETTE), strict=False)
    ]
