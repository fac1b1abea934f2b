"""Outputs of an evaluation: the settings of each host for them."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from mmdet.structures import DetDataSample
from mmengine.config import Config
from mmengine.registry import VISUALIZERS
from mmengine.structures import InstanceData

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.evaluation_outputs import DumpMaps, add_drawing, add_dump


def config_of(scope: str | None, **more: object) -> Config:
    hooks = dict(visualization=dict(type='Hook'))
    config = dict(test_evaluator=dict(type='First'), default_hooks=hooks, visualizer={}, **more)
    return Config({**config, **({} if scope is None else dict(default_scope=scope))})


@pytest.mark.parametrize(
    ('scope', 'kind'),
    [
        ('mmdet', 'DumpDetResults'),
        ('mmseg', 'DumpMaps'),
        ('mmpretrain', 'DumpResults'),
        (None, 'DumpResults'),
    ],
)
def test_a_dump_comes_after_the_other_evaluators(scope: str | None, kind: str):
    config = config_of(scope)
    add_dump(ConfigView(config), Path('x.pkl'))
    first, second = config.test_evaluator
    assert (first.type, second.type, second.out_file_path) == ('First', kind, 'x.pkl')


def test_other_endings_are_refused():
    with pytest.raises(UserError, match=r'`out=maps`: .* must end in \.pkl'):
        add_dump(ConfigView(config_of('mmseg')), Path('maps'))


def test_detectors_are_drawn_by_the_hosts_hook():
    config = config_of('mmdet')
    add_drawing(ConfigView(config), Path('/shown'))
    hook = config.default_hooks.visualization
    assert hook.draw and hook.test_out_dir == '/shown' and 'custom_hooks' not in config


@pytest.mark.parametrize(
    ('visualizer', 'is_ours'),
    [
        (dict(type='DetLocalVisualizer', name='v', vis_backends=[]), True),
        (dict(type='mmdet.DetLocalVisualizer', _scope_='mmdet'), True),
        (dict(type='DetLocalVisualizer', line_width=9), False),
        (dict(type='TheirVisualizer'), False),
    ],
)
def test_pictures_of_detectors_grow_with_the_image(visualizer: dict, is_ours: bool):
    config = config_of('mmdet')
    config.visualizer = visualizer
    add_drawing(ConfigView(config), Path('/shown'))
    assert (config.visualizer.type != visualizer['type']) == is_ours
    if not is_ours:
        return
    built = VISUALIZERS.build(dict(config.visualizer, name=f'of {visualizer}'))
    built.dataset_meta = dict(classes=('a',), palette=[(9, 200, 9)])
    sample = DetDataSample(
        pred_instances=InstanceData(
            bboxes=torch.tensor([[500.0, 500, 2500, 1500]]),
            labels=torch.tensor([0]),
            scores=torch.tensor([0.9]),
        )
    )
    image = np.full((2000, 3000, 3), 100, np.uint8)
    built.add_datasample('x', image, sample)
    lines = (built.get_image() == (9, 200, 9)).all(axis=-1)[1000]
    assert lines[3000:4000].sum() > 8, 'a line of mmdet has 4 pixels'
    assert not lines[:3000].any(), 'the truth has no object'


@pytest.mark.parametrize(
    ('missing', 'message'),
    [('default_hooks', r'default_hooks\.visualization'), ('visualizer', 'visualizer')],
)
def test_what_the_hosts_hook_needs(missing: str, message: str):
    config = config_of('mmdet')
    config[missing] = None
    with pytest.raises(UserError, match=f'`show_dir` needs {message}'):
        add_drawing(ConfigView(config), Path('/shown'))


def test_the_hosts_hook_does_not_know_ranges():
    steps = [dict(type='LoadImageInRange', value_range=(0, 4095))]
    config = config_of('mmdet', test_dataloader=dict(dataset=dict(type='X', pipeline=steps)))
    with pytest.raises(UserError, match='LoadImageInRange'):
        add_drawing(ConfigView(config), Path('/shown'))


def data_set(root: str, prefix: str) -> dict:
    return dict(type='BaseSegDataset', data_root=root, data_prefix=dict(img_path=prefix))


@pytest.mark.parametrize(
    ('dataset', 'root'),
    [
        (data_set('/data', 'images/val'), '/data/images/val'),
        (dict(type='BaseSegDataset', data_root='/data'), '/data'),
        (dict(datasets=[data_set('/a', 'images'), data_set('/a/images', 'b')]), '/a/images'),
        (dict(datasets=[data_set('/a', 'images'), data_set('/b', 'images')]), '/'),
    ],
)
def test_maps_are_drawn_by_our_hook(dataset: dict, root: str):
    config = config_of('mmseg', test_dataloader=dict(dataset=dataset))
    config.custom_hooks = [dict(type='Other')]
    # Neither is needed.
    config.visualizer = config.default_hooks = None
    add_drawing(ConfigView(config), Path('/shown'))
    other, hook = config.custom_hooks
    assert other == dict(type='Other')
    assert hook == dict(type='DrawPredictionsHook', folder='/shown', root=root)


@pytest.mark.parametrize(
    ('labels', 'dtype'),
    [(torch.tensor([[[0, 149]]]), torch.uint8), (torch.tensor([[[0, 700]]]), torch.int16)],
)
def test_maps_are_kept_without_logits(labels: torch.Tensor, dtype: torch.dtype, tmp_path: Path):
    logits, truth = dict(data=torch.zeros(701, 1, 2)), dict(data=labels)
    sample = dict(pred_sem_seg=dict(data=labels), seg_logits=logits, gt_sem_seg=truth)
    # A pipeline with its own meta_keys may know images by another name than their path.
    for named in (dict(img_path='a.jpg'), dict(sample_idx=3), {}):
        found = dumped(dict(named, **sample), tmp_path / 'x.pkl')
        assert found.keys() == {*named, 'pred_sem_seg'}
        assert found['pred_sem_seg'].dtype == dtype
        assert torch.equal(found['pred_sem_seg'].long(), labels)


def test_what_is_no_map_is_kept_as_it_is(tmp_path: Path):
    depths = dict(img_path='a.jpg', pred_depth_map=dict(data=torch.rand(1, 2, 3)))
    found = dumped(depths, tmp_path / 'x.pkl')
    assert found.keys() == depths.keys()
    assert torch.equal(found['pred_depth_map']['data'], depths['pred_depth_map']['data'])


def dumped(sample: dict, file: Path) -> dict:
    """The content of the pickle of one sample."""
    metric = DumpMaps(str(file))
    metric.process({}, [sample])
    metric.evaluate(1)
    with file.open('rb') as stream:
        (found,) = pickle.load(stream)
    return found


@pytest.mark.parametrize('scope', ['mmdet', 'mmseg'])
def test_pictures_need_a_folder(tmp_path: Path, scope: str):
    file = tmp_path / 'notes.txt'
    file.touch()
    for folder in (file, file / 'below'):
        with pytest.raises(UserError, match=r'`show_dir=.*`: .*/notes\.txt is a file, not a fold'):
            add_drawing(ConfigView(config_of(scope)), folder)


def test_a_dump_needs_a_folder_that_is_there(tmp_path: Path):
    file = tmp_path / 'nowhere' / 'x.pkl'
    with pytest.raises(UserError, match=r'x\.pkl cannot be written: there is no folder'):
        add_dump(ConfigView(config_of('mmdet')), file)
    assert not file.parent.exists()
