"""Images and masks that cannot be read are skipped, up to a limit."""

import logging
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from mmengine.dataset import Compose, InfiniteSampler, pseudo_collate
from mmengine.logging import MMLogger
from mmengine.registry import TRANSFORMS
from PIL import Image
from torch.utils.data import DataLoader
from toy import ToyNoise, evaluated, log_of, toy_config, toy_iterations, train

from ptnt_mm.hooks import SkipCorruptImagesHook
from ptnt_mm.hooks.repeat import EndlessLoader
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.engine.failures import failures_explained


def spoil(monkeypatch, rows: set[int]) -> None:
    read = ToyNoise.__call__

    def failing(self, results):
        if results['sample_idx'] in rows:
            raise OSError(f'row {results["sample_idx"]} is cut short')
        results['img_path'] = f'{results["sample_idx"]}.jpg'
        return read(self, results)

    monkeypatch.setattr(ToyNoise, '__call__', failing)


@pytest.mark.parametrize('workers', [0, 2])
def test_corrupt_images_are_named_and_skipped(tmp_path, monkeypatch, workers):
    spoil(monkeypatch, {3, 7})
    config = toy_config(tmp_path, epochs=2)
    config.train_dataloader.update(num_workers=workers, persistent_workers=workers > 0)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=20)]
    train(config)
    assert (tmp_path / 'epoch_2.pth').exists()
    # A process reports the same file once.
    assert log_of(tmp_path).count('is cut short') >= 2


@pytest.mark.parametrize(
    ('toy', 'workers'), [(toy_config, 0), (toy_iterations, 0), (toy_iterations, 2)]
)
def test_exceeded_limit_stops_training(tmp_path: Path, monkeypatch, toy, workers: int):
    spoil(monkeypatch, {3, 7, 9})
    config = toy(tmp_path)
    config.train_dataloader.update(num_workers=workers, persistent_workers=workers > 0)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=2)]
    stopped = pytest.raises(
        UserError, match=r'^3 images or masks could not .* is image \d: row \d is cut short.*limit='
    )
    with stopped as caught, failures_explained(logging.getLogger('quiet'), tmp_path):
        train(config)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize('toy', [toy_config, toy_iterations])
def test_the_same_file_counts_once(tmp_path: Path, monkeypatch, toy, workers: int):
    """Two corrupt rows of ten count as two, over all passes and in repeated data."""
    spoil(monkeypatch, {3, 7})
    config = toy(tmp_path)
    loader = config.train_dataloader
    loader.update(num_workers=workers, persistent_workers=workers > 0)
    loader.dataset = dict(type='RepeatDataset', times=3, dataset=loader.dataset)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=2)]
    train(config)
    assert list(tmp_path.glob('*.pth'))
    assert {f'row {i} is cut short' in log_of(tmp_path) for i in (3, 7)} == {True}


@pytest.mark.parametrize('workers', [0, 2])
def test_an_error_of_every_image_ends_training(tmp_path: Path, monkeypatch, workers: int):
    """No iteration ends, and the underlying error is reported."""

    def failing(self, results):
        raise ValueError('a wrong setting of mine')

    monkeypatch.setattr(ToyNoise, '__call__', failing)
    config = toy_iterations(tmp_path)
    config.train_dataloader.update(num_workers=workers, persistent_workers=workers > 0)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=3)]
    with pytest.raises(UserError, match='4 images or masks .*a wrong setting of mine') as caught:
        train(config)
    if workers == 0:
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize('split', ['train', 'val'])
def test_an_image_that_the_pipeline_cannot_digest_is_named(
    tmp_path: Path, split: str, workers: int
):
    config = toy_config(tmp_path, epochs=1)
    if split == 'val':
        evaluated(config)
    loader = config[f'{split}_dataloader']
    loader.update(num_workers=workers, persistent_workers=False)
    # The first step reads.
    refusing = [dict(type='RefusesARow', row=row) for row in (None, 7)]
    loader.dataset.pipeline = [*refusing, *loader.dataset.pipeline]
    config.custom_hooks += [dict(type='SkipCorruptImagesHook')]
    stopped = pytest.raises(
        UserError, match=r'image 7 cannot be prepared .*: ValueError: no pixels'
    )
    with stopped as caught, failures_explained(logging.getLogger('quiet'), tmp_path):
        train(config)
    assert '\n' not in str(caught.value)


@TRANSFORMS.register_module()
class RefusesARow:
    def __init__(self, row: int | None):
        self.row = row

    def __call__(self, results: dict) -> dict:
        if results['sample_idx'] == self.row:
            raise ValueError('no pixels')
        return results


@pytest.mark.parametrize('limit', [True, -1, 2.5, '10', None])
def test_invalid_limit_is_refused(limit):
    with pytest.raises(UserError, match=r'SkipCorruptImagesHook\(limit=.*: expected the number of'):
        SkipCorruptImagesHook(limit)


@TRANSFORMS.register_module()
class LoadRow:
    """The first step."""

    def __call__(self, results: dict) -> dict:
        return results


@TRANSFORMS.register_module()
class LoadRowAnnotations:
    """A second step, which reads a file, too, if there are masks."""

    def __init__(self, masks: bool = True):
        self.masks = masks

    def __call__(self, results: dict) -> dict:
        # As in mmdet's CocoDataset.
        results['seg_map_path'] = f'{results["sample_idx"]}.png' if self.masks else None
        if results['sample_idx'] == 3:
            raise OSError('its header is missing')
        return results


def annotated_rows(work_dir: Path, masks: bool) -> Config:
    config = toy_iterations(work_dir)
    config.train_dataloader.num_workers, config.train_dataloader.persistent_workers = 0, False
    pipeline = config.train_dataloader.dataset.pipeline
    pipeline[:] = [dict(type='LoadRow'), dict(type='LoadRowAnnotations', masks=masks), *pipeline]
    config.custom_hooks += [dict(type='SkipCorruptImagesHook')]
    return config


def test_corrupt_masks_are_named_and_skipped(tmp_path: Path):
    train(annotated_rows(tmp_path, masks=True))
    assert '3.png cannot be read and is skipped: its header is missing' in log_of(tmp_path)


def test_corrupt_annotations_without_a_file_stop_training(tmp_path: Path):
    with pytest.raises(UserError, match=r'image \d cannot be prepared .* its header is missing'):
        train(annotated_rows(tmp_path, masks=False))
    assert 'is skipped' not in log_of(tmp_path)


class Step:
    def __init__(self, error: Exception):
        self.error = error

    def transform(self, results: dict) -> dict:
        raise self.error

    __call__ = transform


class LoadStep(Step):
    """One that decodes."""


@pytest.mark.parametrize(
    ('step', 'expected', 'message'),
    [
        (LoadStep(ValueError('no header')), UserError, '^a.jpg .* no header.*Correct it or remove'),
        (LoadStep(OSError('no image')), UserError, '^a.jpg .* no image.*Correct it or remove'),
        (Step(AttributeError('no x')), UserError, r'^a.jpg .*: no x \(\S+, line \d+\)$'),
        (LoadStep(MemoryError('')), MemoryError, '^$'),
        (LoadStep(OSError(5, 'Input/output error')), OSError, 'Input/output'),
    ],
)
def test_only_a_step_that_reads_or_resizes_blames_the_image(
    step: Step, expected: type[Exception], message: str
):
    data_set = SimpleNamespace(pipeline=Compose([step]))
    loader = SimpleNamespace(dataset=data_set)
    SkipCorruptImagesHook().before_val_epoch(SimpleNamespace(val_dataloader=loader))
    with pytest.raises(expected, match=message):
        data_set.pipeline(dict(img_path='a.jpg'))


def test_corrupt_mmseg_images_and_masks_are_replaced(tmp_path: Path, monkeypatch, caplog):
    """One of each is cut off; both are named and replaced by others."""
    from mmcv.transforms import LoadImageFromFile
    from mmseg import datasets

    for name in ('images', 'masks'):
        (tmp_path / name).mkdir()
        for number in range(4):
            Image.effect_noise((32, 32), 99).save(tmp_path / name / f'{number}.png')
    broken = [tmp_path / 'images' / '1.png', tmp_path / 'masks' / '2.png']
    for file in broken:
        file.write_bytes(file.read_bytes()[:40])
    steps = [LoadImageFromFile(), datasets.LoadAnnotations(), datasets.PackSegInputs()]
    data = datasets.BaseSegDataset(
        data_root=str(tmp_path), data_prefix=dict(img_path='images', seg_map_path='masks'),
        img_suffix='.png', metainfo=dict(classes=('a',)), pipeline=steps,
    )  # fmt: skip
    monkeypatch.setattr(MMLogger.get_current_instance(), 'handlers', [caplog.handler])
    loader = DataLoader(
        data, batch_size=2, sampler=InfiniteSampler(data, seed=0), collate_fn=pseudo_collate
    )
    runner = SimpleNamespace(train_dataloader=EndlessLoader(loader), iter=0)
    SkipCorruptImagesHook(limit=2).before_train_epoch(runner)
    read = [Path(sample.img_path).name for batch in islice(runner.train_dataloader, 2)
            for sample in batch['data_samples']]  # fmt: skip
    assert set(read) <= {'0.png', '3.png'} and len(read) == 4
    assert sorted(text.partition(' ')[0] for text in caplog.messages) == sorted(map(str, broken))
