"""Colours that do not repeat."""

from ptnt_mm.utils.colours import PALETTE, as_hex, class_colours, palette_of


def test_no_two_classes_share_a_colour():
    colours = class_colours(200)
    assert len(set(colours)) == len(colours) == 200
    assert tuple(colours[:7]) == PALETTE and class_colours(3) == colours[:3]


def test_a_data_sets_colours_come_first():
    own = [(1, 2, 3), (4, 5, 6)]
    assert palette_of(dict(palette=own), 3) == [*own, class_colours(3)[2]]
    for meta in ({}, dict(palette=None), dict(palette='random')):
        assert palette_of(meta, 3) == class_colours(3)


def test_a_colour_as_text():
    assert as_hex((0, 10, 255)) == '#000aff'
