"""Colours that do not repeat."""

from ptnt_mm.utils.colours import PALETTE, class_colours


def test_no_two_classes_share_a_colour():
    colours = class_colours(200)
    assert len(set(colours)) == len(colours) == 200
    assert tuple(colours[:7]) == PALETTE and class_colours(3) == colours[:3]
