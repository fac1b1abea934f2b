"""Shared by all figures: colours, and atomic saving."""

import io
from pathlib import Path

from matplotlib.figure import Figure

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.colours import PALETTE

INK = '#222222'
FAINT = '#888888'
_DPI = 120


def colour(index: int) -> tuple[float, float, float]:
    """Return the colour of class or line number `index`, RGB in [0, 1]. Colours repeat."""
    red, green, blue = PALETTE[index % len(PALETTE)]
    return red / 255, green / 255, blue / 255


def save_figure(figure: Figure, out_file: Path) -> Path:
    """Save a figure as PNG, atomically, or raise a UserError."""
    content = io.BytesIO()
    figure.savefig(content, format='png', dpi=_DPI, facecolor='white')
    write_atomically(out_file, content.getvalue())
    return out_file
