"""The rows of the model zoo."""

import pytest

import ptnt_mm
from ptnt_mm import zoo
from ptnt_mm.errors import UserError
from ptnt_mm.reproduce.entries import choose, entries

pytest.importorskip('mmdet')


def test_every_config_for_coco_is_a_row():
    others = {'custom_coco', 'demo_retinanet_ptnt_ti', 'demo_mask_rcnn_ptnt_ti'}
    names = [entry.name for entry in entries()]
    assert sorted(names) == sorted(set(zoo.config_names()) - others)
    assert names[0] == 'retinanet_ptnt_ti_1x'


def test_a_name_says_what_it_is():
    (entry,) = choose(['cascade_mask_rcnn_ptnt_m_3x_ms'])
    assert (entry.detector, entry.backbone) == ('Cascade Mask R-CNN', 'PyramidTNT-M')
    assert (entry.epochs, entry.step) == (36, 'cascade_mask_rcnn_ptnt_m_ms')


@pytest.mark.parametrize(
    'name', ['retinanet_ptnt_ti_1x', 'mask_rcnn_ptnt_b_3x_ms', 'dino_ptnt_s_1x', 'rtmdet_ptnt_s_1x']
)
def test_epochs_are_the_configs(name: str):
    (entry,) = choose([name])
    assert ptnt_mm.get_config(name).train_cfg.max_epochs == entry.epochs


def test_one_figure_was_published_as_far_as_we_know():
    figures = {entry.name: entry.published.box_ap for entry in entries()}
    assert {name: ap for name, ap in figures.items() if ap} == {'retinanet_ptnt_s_1x': 42.0}
    assert all(entry.published.mask_ap is None for entry in entries())


def test_an_unknown_row_names_the_nearest():
    with pytest.raises(UserError, match="unknown config for COCO 'retina.*retinanet_ptnt_s_1x'"):
        choose(['retinanet_s_1x'])
    with pytest.raises(UserError, match='unknown config for COCO'):
        choose(['demo_retinanet_ptnt_ti'])
