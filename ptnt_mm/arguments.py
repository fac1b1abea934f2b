"""Values of command-line arguments that several tools take."""

import argparse


def size(text: str) -> tuple[int, int]:
    """Height and width in pixels, of a text such as '800x1344'.

    Raises:
        argparse.ArgumentTypeError: if it is none; argparse says so.
    """
    height, _, width = text.partition('x')
    return whole(height), whole(width)


def whole(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: if it is none; argparse says so.
    """
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number above 0')
    return int(text)
