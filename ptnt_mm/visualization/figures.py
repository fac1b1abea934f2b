"""What all figures share: colours, checks before the work, and atomic saving."""

from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.errors import UserError
from ptnt_mm.files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours without black (RGB): colour-blind people can tell them apart.
PALETTE = (
    (230, 159, 0),  # orange
    (86, 180, 233),  # sky blue
    (0, 158, 115),  # bluish green
    (204, 121, 167),  # reddish purple
    (213, 94, 0),  # vermilion
    (0, 114, 178),  # blue
    (240, 228, 66),  # yellow
)
INK = '#222222'
FAINT = '#888888'
_DPI = 120


def colour(index: int) -> tuple[float, float, float]:
    """Give the colour of the class or line number `index`, RGB in [0, 1]; they repeat."""
    return fractions(PALETTE[index % len(PALETTE)])


def fractions(rgb: tuple[int, int, int]) -> tuple[float, float, float]:
    """Give a colour of whole numbers up to 255 in [0, 1], as Matplotlib takes it."""
    red, green, blue = rgb
    return red / 255, green / 255, blue / 255


def check_out_file(out_file: Path) -> None:
    """Fail before the work where the figure could not be saved.

    Raises:
        UserError: the name has an ending that Matplotlib cannot write.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if out_file.suffix[1:].lower() not in known:
        raise UserError(
            f'{out_file} ends in "{out_file.suffix}"; use .png or another of {", ".join(known)}.'
        )


def save(figure: 'Figure', out_file: Path) -> Path:
    """Save a figure under its name only when it is whole.

    Raises:
        UserError: the folder cannot be written to.
    """
    with written_whole(out_file) as partial:
        figure.savefig(partial, format=out_file.suffix[1:].lower(), dpi=_DPI, facecolor='white')
    return out_file
