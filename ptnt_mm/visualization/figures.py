"""Shared by all figures: colours, a check of the file format, and atomic saving."""

import io
from pathlib import Path

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from ptnt_mm.utils.atomic_files import write_whole
from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.utils.errors import UserError

Colour = tuple[float, float, float]
"""RGB in [0, 1], as Matplotlib expects it."""

INK = '#222222'
FAINT = '#888888'
_DPI = 120


def colour(index: int) -> Colour:
    """Return the colour of class or line number `index`, RGB in [0, 1]. Colours repeat."""
    return fractions(PALETTE[index % len(PALETTE)])


def fractions(rgb: tuple[int, int, int]) -> Colour:
    """Convert an RGB colour from [0, 255] to [0, 1]."""
    red, green, blue = rgb
    return red / 255, green / 255, blue / 255


def check_out_file(out_file: Path) -> None:
    """Check before the work starts that Matplotlib can write the format of the figure.

    Raises:
        UserError: if the file extension is not one that Matplotlib can write.
    """
    known = FigureCanvasBase.get_supported_filetypes()
    if out_file.suffix[1:].lower() not in known:
        raise UserError(
            f'{out_file} ends in "{out_file.suffix}"; use .png or another of {", ".join(known)}.'
        )


def save(figure: Figure, out_file: Path) -> Path:
    """Save a figure atomically.

    Raises:
        UserError: if the folder cannot be written to.
    """
    content = io.BytesIO()
    figure.savefig(content, format=out_file.suffix[1:].lower(), dpi=_DPI, facecolor='white')
    write_whole(out_file, content.getvalue())
    return out_file
