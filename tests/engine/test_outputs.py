"""What an evaluation keeps: which settings of which host ask for it."""

import pickle
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from ptnt_mm.engine.outputs import DumpMaps, draw, dump
from ptnt_mm.errors import UserError


def config_of(scope: str | None, **more: object) -> Config:
    hooks = dict(visualization=dict(type='Hook'))
    config = dict(test_evaluator=dict(type='First'), default_hooks=hooks, visualizer={}, **more)
    return Config({**config, **({} if scope is None else dict(default_scope=scope))})


@pytest.mark.parametrize(
    ('scope', 'kind'),
    [
        ('mmdet', 'DumpDetResults'),
        ('mmseg', 'ptnt_mm.engine.outputs.DumpMaps'),
        ('mmpretrain', 'DumpResults'),
        (None, 'DumpResults'),
    ],
)
def test_a_dump_comes_after_the_other_evaluators(scope: str | None, kind: str):
    config = config_of(scope)
    dump(config, Path('x.pkl'))
    first, second = config.test_evaluator
    assert (first.type, second.type, second.out_file_path) == ('First', kind, 'x.pkl')


def test_other_endings_are_refused():
    with pytest.raises(UserError, match=r'--out maps: .* end it in \.pkl'):
        dump(config_of('mmseg'), Path('maps'))


def test_each_host_draws_in_its_own_way():
    detector, segmenter = config_of('mmdet'), config_of('mmseg')
    for config in (detector, segmenter):
        draw(config, Path('/shown'))
        assert config.default_hooks.visualization.draw
    assert detector.default_hooks.visualization.test_out_dir == '/shown'
    assert segmenter.visualizer.save_dir == '/shown'
    assert segmenter.default_hooks.visualization.interval == 1
    assert 'test_out_dir' not in segmenter.default_hooks.visualization


def test_drawing_without_a_hook():
    config = config_of('mmseg')
    del config.default_hooks['visualization']
    with pytest.raises(UserError, match=r'--show-dir needs default_hooks\.visualization'):
        draw(config, Path('/shown'))


@pytest.mark.parametrize(
    ('labels', 'dtype'),
    [(torch.tensor([[[0, 149]]]), torch.uint8), (torch.tensor([[[0, 700]]]), torch.int16)],
)
def test_maps_are_kept_without_logits(labels: torch.Tensor, dtype: torch.dtype, tmp_path: Path):
    metric = DumpMaps(str(tmp_path / 'x.pkl'))
    logits = dict(data=torch.zeros(701, 1, 2))
    sample = dict(img_path='a.jpg', pred_sem_seg=dict(data=labels), seg_logits=logits)
    metric.process({}, [sample])
    metric.evaluate(1)
    with (tmp_path / 'x.pkl').open('rb') as stream:
        (found,) = pickle.load(stream)
    assert found.keys() == {'img_path', 'pred_sem_seg'}
    assert found['pred_sem_seg'].dtype == dtype
    assert torch.equal(found['pred_sem_seg'].long(), labels)
