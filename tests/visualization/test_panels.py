"""Rows of panels, and many channels as colours and points."""

import numpy as np
import pytest

from ptnt_mm.inference.network_figures import scatter_channels, to_colours
from ptnt_mm.visualization.panels import Panel, PanelRow, Points, around, draw_rows, from_zero

IMAGE = np.full((60, 80, 3), 100, np.uint8)


def axes_titles(figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def test_a_map_lies_where_its_places_are():
    values = np.arange(6.0).reshape(2, 3)
    scale = from_zero('attention (%)', values)
    panel = Panel('map', IMAGE, values, (0, 96, 64, 0), scale, opacity=0.5, frame=(32, 64, 64, 32))
    figure = draw_rows('Title', [PanelRow('a row', [panel])])
    (axes,) = (axes for axes in figure.axes if axes.get_title() == 'map')
    under, over = axes.images
    assert list(under.get_extent()) == [0, 80, 60, 0]
    assert list(over.get_extent()) == [0, 96, 64, 0]
    assert (over.get_alpha(), over.get_clim(), over.get_interpolation()) == (0.5, (0, 5), 'nearest')
    # What lies beyond the image is not shown.
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 80), (60, 0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ('x (pixels)', 'y (pixels)')
    assert [box.get_bbox().extents.tolist() for box in axes.patches] == [[32, 32, 64, 64]] * 2


def test_neighbours_of_one_scale_share_a_bar():
    maps = [np.ones((2, 2)), np.zeros((2, 2))]
    one, other = from_zero('one', *maps), around(0, 'other', maps[0])
    place = (0, 80, 60, 0)
    panels = [Panel(str(i), IMAGE, maps[0], place, s) for i, s in enumerate((one, one, other))]
    rows = [PanelRow('first', panels), PanelRow('second', [Panel('image', IMAGE)])]
    figure = draw_rows('Title', rows)
    inside = [child for axes in figure.axes for child in axes.child_axes]
    assert [bar.get_ylabel() for bar in inside] == ['one', 'other']
    assert axes_titles(figure) == ['0', '1', '2', 'image']


def test_scales():
    assert from_zero('', np.zeros(3))[1:3] == (0, 1)
    assert around(0, '', np.array([-2.0, 1.0]))[1:3] == pytest.approx((-2, 2), rel=0.01)
    # As good as even: the colours do not exaggerate it.
    assert around(6.25, '', np.array([6.25, 6.26]))[1:3] == pytest.approx((5.625, 6.875))


def test_points_and_tiles():
    scale = from_zero('spread', np.ones(5))
    points = Points('points', np.random.rand(5, 2), np.ones(5), scale)
    tiles = Panel('tiles', IMAGE, np.ones((4, 6)), (0, 80, 60, 0), tiles=(2, 3))
    many = tiles._replace(title='many', tiles=(2, 300))
    figure = draw_rows('Title', [PanelRow('row', [points, tiles, many])])
    of = {axes.get_title(): axes for axes in figure.axes}
    assert of['points'].get_xlabel() == 't-SNE 1' and len(of['points'].collections) == 1
    assert len(of['tiles'].lines) == 3 + 4 and not of['many'].lines


def test_three_colours_are_the_principal_components():
    pytest.importorskip('sklearn')
    feature = np.random.default_rng(0).normal(size=(5, 8, 9))
    feature[1] *= 20
    colours, kept = to_colours(feature)
    assert colours.shape == (8, 9, 3) and colours.min() == 0 and colours.max() == 1
    places = feature.reshape(5, -1).T
    variances = np.sort(np.linalg.eigvalsh(np.cov(places.T)))[::-1]
    assert kept == pytest.approx(variances[:3].sum() / variances.sum())
    # The first is the loud channel, red, up to its sign and its scale.
    assert abs(np.corrcoef(colours[..., 0].ravel(), feature[1].ravel())[0, 1]) > 0.98


@pytest.mark.parametrize('shape', [(4, 3, 3), (4, 1, 1), (2, 3, 3)])
def test_maps_with_little_to_show(shape: tuple[int, ...]):
    pytest.importorskip('sklearn')
    colours, kept = to_colours(np.ones(shape))
    assert (colours == 0.5).all() and kept == 0
    assert to_colours(np.random.rand(*shape))[0].shape == (*shape[1:], 3)


def test_channels_with_like_maps_are_near():
    pytest.importorskip('sklearn')
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, 1, 6, 7))
    near = random.normal(size=(20, 6, 7)) * 0.1
    places = scatter_channels(np.concatenate([one + near[:10], other + near[10:]]))
    assert places.shape == (20, 2)
    within = np.linalg.norm(places[:10] - places[:10].mean(axis=0), axis=1).max()
    assert within < np.linalg.norm(places[:10].mean(axis=0) - places[10:].mean(axis=0))
