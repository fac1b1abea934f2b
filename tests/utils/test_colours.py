"""Colours of classes."""

from ptnt_mm.utils.colours import as_hex, class_colours, palette_of


def test_a_data_sets_colours_come_first():
    own = [(1, 2, 3), (4, 5, 6)]
    assert palette_of(dict(palette=own), 3) == [*own, class_colours(3)[2]]
    for meta in ({}, dict(palette=None), dict(palette='random')):
        assert palette_of(meta, 3) == class_colours(3)


def test_a_colour_as_text():
    assert as_hex((0, 10, 255)) == '#000aff'
