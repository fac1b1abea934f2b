"""Panels of a page, and many channels as colours and points."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.workbench.pages.visualize.panels import Panel, Points, around, from_zero
from ptnt_mm.workbench.pages.visualize.sections import scatter_channels, similarity, to_colours


def decoded(url: str) -> np.ndarray:
    content = base64.b64decode(url.removeprefix('data:image/png;base64,'))
    return np.asarray(Image.open(io.BytesIO(content)).convert('RGB'))


def test_values_become_pixels():
    values = np.array([[0.0, 5.0], [2.5, np.nan]])
    scale = from_zero('attention (%)', np.array([5.0]))
    pixels = decoded(Panel('map', values, (0, 0, 80, 60), scale).layer())
    dark, light, middle = pixels[0, 0], pixels[0, 1], pixels[1, 0]
    assert dark.sum() < middle.sum() < light.sum()
    assert (pixels[1, 1] == dark).all(), 'no number has the lowest colour'
    colours = np.random.rand(3, 4, 3)
    assert decoded(Panel('map', colours).layer()) / 255 == pytest.approx(colours, abs=0.003)


def test_large_maps_are_thinned():
    assert decoded(Panel('map', np.zeros((2000, 10, 3))).layer()).shape == (667, 10, 3)


def test_lines_between_tiles():
    panel = Panel('tiles', np.ones((4, 6)), (0, 0, 90, 60), tiles=(2, 3))
    assert panel.lines().count('M') == 3 + 4 and 'M30.00 0.00v60.00' in panel.lines()
    assert panel._replace(tiles=(2, 300)).lines() == panel._replace(tiles=(1, 1)).lines() == ''


def test_scales():
    assert from_zero('', np.zeros(3))[1:3] == (0, 1)
    assert around(0, '', np.array([-2.0, 1.0]))[1:3] == pytest.approx((-2, 2), rel=0.01)
    # Almost even: the colours do not exaggerate it.
    assert around(6.25, '', np.array([6.25, 6.26]))[1:3] == pytest.approx((5.625, 6.875))
    assert from_zero('', np.ones(1)).gradient.count('#') == 9


def test_points_fill_their_panel():
    positions = np.array([[-3.0, 7.0], [5.0, 7.0], [1.0, 9.0]])
    circles = Points('points', positions, np.arange(3.0), from_zero('', np.array([2.0]))).circles()
    assert [circle[:2] for circle in circles] == [(4, 4), (96, 4), (50, 96)]
    assert len({colour for _, _, colour in circles}) == 3


def test_similarity_is_to_the_mean_of_the_covered_places():
    feature = np.zeros((2, 1, 4))
    feature[0], feature[1] = [[3, 3, -3, -3]], [[100, 100, 100, 100]]
    covered = np.array([[True, False, False, False]])
    # All places have the second channel in common.
    assert similarity(feature, covered) == pytest.approx(np.array([[1, 1, -1, -1]]))
    assert (similarity(np.ones((2, 1, 1)), np.array([[True]])) == 0).all()


def test_three_colours_are_the_principal_components():
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
    colours, kept = to_colours(np.ones(shape))
    assert (colours == 0.5).all() and kept == 0
    assert to_colours(np.random.rand(*shape))[0].shape == (*shape[1:], 3)


def test_channels_with_like_maps_are_near():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, 1, 6, 7))
    near = random.normal(size=(20, 6, 7)) * 0.1
    places = scatter_channels(np.concatenate([one + near[:10], other + near[10:]]))
    assert places.shape == (20, 2)
    within = np.linalg.norm(places[:10] - places[:10].mean(axis=0), axis=1).max()
    assert within < np.linalg.norm(places[:10].mean(axis=0) - places[10:].mean(axis=0))
