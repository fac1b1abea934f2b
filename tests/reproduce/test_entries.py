"""The rows of the model zoo."""

from dataclasses import replace

import pytest

import ptnt_mm
from ptnt_mm.models.pyramid_tnt import ARCHS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config import zoo
from reproduction.entries import find_entries, list_entries


def test_every_config_for_a_benchmark_is_a_row():
    names = [entry.name for entry in list_entries()]
    known = ('custom_', 'demo_', 'pretrain_')
    others = set(zoo.config_names()) - set(names)
    assert {name for name in others if not name.startswith(known)} == set(), (
        'these configs are no rows of the model zoo: name them METHOD_NETWORK_SIZE_SCHEDULE, where '
        'METHOD and NETWORK are in METHODS and NETWORKS of tools/reproduction/entries.py and SIZE '
        'is the alias of a variant'
    )
    sizes = [e.size for e in list_entries() if e.name.startswith('retinanet') and e.length == 36]
    assert sizes == [size for arch in ARCHS for size in sizes if arch.startswith(size)]


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('cascade_mask_rcnn_ptnt_m_3x_ms', ('Cascade Mask R-CNN', 'COCO val2017', 36)),
        ('retinanet_ptnt_s_1x_low_mem', ('RetinaNet', 'COCO val2017', 12)),
        ('upernet_ptnt_s_80k_cityscapes', ('UPerNet', 'Cityscapes val', 80_000)),
        ('classifier_ptnt_ti_300e_imagenet', ('Classifier', 'ImageNet-1k validation', 300)),
        ('classifier_cpvt_ti_gap_300e_imagenet', ('Classifier', 'ImageNet-1k validation', 300)),
        ('classifier_tnt_b_384_pets', ('Classifier', 'Oxford-IIIT Pets test', 1000)),
        ('semantic_fpn_tnt_s_40k_ade20k', ('Semantic FPN', 'ADE20K validation', 40_000)),
        ('detr_r50_peg_50e', ('DETR', 'COCO val2017', 50)),
    ],
)
def test_a_name_determines_the_entry(name: str, expected: tuple):
    (entry,) = find_entries([name])
    assert (entry.method, entry.data, entry.length) == expected
    loop = ptnt_mm.get_config(name).train_cfg
    assert loop['max_epochs' if entry.unit == 'epoch' else 'max_iters'] == entry.length


def test_a_variant_without_published_weights_needs_no_file():
    (entry,) = find_entries(['retinanet_ptnt_s_1x'])
    assert entry.weights == 'ptnt_s_82.0.pth.tar'
    assert replace(entry, size='xl').weights is None


def test_an_unknown_row_names_the_nearest():
    with pytest.raises(UserError, match='retinanet_ptn_s_1x.*retinanet_ptnt_s_1x'):
        find_entries(['retinanet_ptn_s_1x'])
    with pytest.raises(UserError, match='demo_retinanet_ptnt_ti'):
        find_entries(['demo_retinanet_ptnt_ti'])
