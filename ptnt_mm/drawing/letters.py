"""Sizes of letters and lines on a picture, which grow with it, and the font."""

from functools import cache

from PIL import ImageFont

SMALLEST_LETTERS = 10
"""In pixels; smaller ones are hard to read."""

_LETTERS_PER_SIDE = 40


def letter_size(size: tuple[int, int], smallest: int = SMALLEST_LETTERS) -> int:
    """The height of letters on a picture of a size (width, height), all in pixels."""
    return max(smallest, max(size) // _LETTERS_PER_SIDE)


@cache
def font_of(size: int) -> ImageFont.FreeTypeFont:
    """The font for letters of a height in pixels."""
    # Importing matplotlib takes longer than the rest of ptnt_mm.
    from matplotlib.font_manager import findfont

    # Of the fonts that come with matplotlib, this one covers the most alphabets.
    return ImageFont.truetype(findfont('DejaVu Sans'), size)
