"""The rows of the model zoo."""

import re
from pathlib import Path

import pytest

import ptnt_mm
from ptnt_mm import zoo
from ptnt_mm.models.archs import ARCHS
from ptnt_mm.utils.errors import UserError
from reproduction.entries import Entry, find_entries, list_entries
from reproduction.trainings import recipe_command

pytest.importorskip('mmdet')

# The zoo is PyramidTNT's, as published. docs/family.md has these.
OTHER_NETWORKS = {
    'detr_r50_peg_50e',
    'mask_rcnn_tnt_s_1x',
    'retinanet_ptnt_s_peg_1x',
    'retinanet_tnt_s_1x',
    'semantic_fpn_tnt_s_40k_ade20k',
}


def test_every_config_for_a_benchmark_is_a_row():
    names = [entry.name for entry in list_entries()]
    others = set(zoo.config_names()) - set(names)
    known = ('custom_', 'demo_', 'classifier_tnt_', 'classifier_cpvt_')
    strangers = {name for name in others if not name.startswith(known)}
    assert strangers == OTHER_NETWORKS, (
        'these configs are no rows of the model zoo: name them METHOD_ptnt_SIZE_SCHEDULE, where '
        'METHOD has a line in _FAMILIES of tools/reproduction/entries.py and SIZE is how the name '
        'of a variant in ptnt_mm/models/archs.py begins'
    )
    assert len(set(names)) == len(names) == len(zoo.config_names()) - len(others)
    sizes = [entry.size for entry in list_entries() if re.fullmatch('retinanet_.*_1x', entry.name)]
    assert sizes == [size for arch in ARCHS for size in sizes if arch.startswith(size)]
    assert names[0] == f'retinanet_ptnt_{sizes[0]}_1x'


def test_a_name_says_what_it_is():
    (entry,) = find_entries(['cascade_mask_rcnn_ptnt_m_3x_ms'])
    assert (entry.method, entry.backbone) == ('Cascade Mask R-CNN', 'PyramidTNT-M')
    assert (str(entry.schedule), entry.step) == ('36 epochs', 'cascade_mask_rcnn_ptnt_m_ms')
    (entry,) = find_entries(['upernet_ptnt_s_80k_cityscapes'])
    assert (entry.method, entry.benchmark.name) == ('UPerNet', 'Cityscapes')
    assert (str(entry.schedule), entry.step) == ('80,000 iterations', 'upernet_ptnt_s_cityscapes')


def total_batch(entry: Entry) -> tuple[int, int]:
    """The images of an iteration, as the config's learning rate is for, and as GPUs hold them."""
    config = ptnt_mm.get_config(entry.name)
    images = entry.schedule.gpus * config.train_dataloader.batch_size
    return config.auto_scale_lr.base_batch_size, images


@pytest.mark.parametrize(
    'name', ['retinanet_ptnt_ti_1x', 'mask_rcnn_ptnt_b_3x_ms', 'dino_ptnt_s_1x', 'rtmdet_ptnt_s_1x']
)
def test_epochs_are_the_configs(name: str):
    (entry,) = find_entries([name])
    config = ptnt_mm.get_config(name)
    assert config.train_cfg.max_epochs == entry.schedule.length
    assert total_batch(entry) == (16, 16)


@pytest.mark.parametrize(
    'name',
    [
        'semantic_fpn_ptnt_m_40k_ade20k',
        'upernet_ptnt_b_160k_ade20k',
        'upernet_ptnt_s_80k_cityscapes',
    ],
)
def test_iterations_and_sizes_are_the_configs(name: str):
    pytest.importorskip('mmseg')
    (entry,) = find_entries([name])
    config = ptnt_mm.get_config(name)
    assert config.train_cfg.max_iters == entry.schedule.length
    assert total_batch(entry) == (entry.schedule.images, entry.schedule.images)
    assert entry.benchmark.train_size == tuple(config.model.data_preprocessor.size)
    assert config.train_dataloader.dataset.type == f'{entry.benchmark.name}Dataset'


def test_what_was_published_as_far_as_we_know():
    figures = {entry.name: entry.published for entry in list_entries() if entry.published}
    assert figures == {
        'retinanet_ptnt_s_1x': {'box AP': 42.0, 'AP large': 57.7},
        'classifier_ptnt_ti_300e_imagenet': {'top-1': 75.2},
        'classifier_ptnt_s_300e_imagenet': {'top-1': 82.0},
        'classifier_ptnt_m_300e_imagenet': {'top-1': 83.5},
        'classifier_ptnt_b_300e_imagenet': {'top-1': 84.1},
    }


def test_a_pretraining_is_planned_like_any_training():
    pytest.importorskip('mmpretrain')
    (entry,) = find_entries(['classifier_ptnt_ti_300e_imagenet'])
    config = ptnt_mm.get_config(entry.name)
    assert config.train_cfg.max_epochs == entry.schedule.length == 300
    assert total_batch(entry) == (1024, 1024)
    assert (entry.step, entry.weights) == ('classifier_ptnt_ti_imagenet', None)
    assert entry.train_size == entry.counted_size == (192, 192)
    command = recipe_command(entry, Path('run'), Path('nowhere'), gpus=1)
    assert '--pretrained' not in command and command[-2:] == ['--resume', '--auto-scale-lr']


def test_an_unknown_row_names_the_nearest():
    with pytest.raises(
        UserError, match="unknown config of the model zoo 'retina.*retinanet_ptnt_s_1x'"
    ):
        find_entries(['retinanet_s_1x'])
    with pytest.raises(UserError, match='unknown config of the model zoo'):
        find_entries(['demo_retinanet_ptnt_ti'])
