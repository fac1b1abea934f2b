"""Maps of classes in their colours."""

import numpy as np

from ptnt_mm.utils.colours import class_colours
from ptnt_mm.visualization.class_drawings import paint_map

IMAGE = np.full((8, 8, 3), 100, np.uint8)
NAMED = dict(classes=('rest', 'road'), palette=[(10, 20, 30), (250, 200, 150)])


def test_colours_of_the_data_set():
    labels = np.zeros((8, 8), np.int64)
    labels[4:] = 1
    painted = paint_map(IMAGE, labels, NAMED, 2)
    assert painted[0, 0].tolist() == [65, 60, 55] and painted[-1, -1].tolist() == [125, 150, 175]


def test_ours_for_classes_without():
    labels = np.full((8, 8), 2)
    for meta in (NAMED, dict(classes=None, palette='random')):
        painted = paint_map(IMAGE, labels, meta, 3)
        expected = (100 + np.array(class_colours(3)[2][::-1])) / 2
        assert abs(painted[0, 0] - expected).max() <= 1


def test_what_is_no_class_stays_as_it_is():
    image = np.random.default_rng(0).integers(256, size=(90, 120, 3), dtype=np.uint8)
    labels = np.zeros((90, 120), np.int64)
    labels[:, 50:80], labels[:, 80:] = 255, -1
    painted = paint_map(image, labels, NAMED, 2)
    np.testing.assert_array_equal(painted[:, 50:], image[:, 50:])
    assert (painted[:, :50] != image[:, :50]).any(axis=-1).mean() > 0.9
