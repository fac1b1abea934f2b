"""Data that changes between a run and its continuation."""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from mmengine.logging import MessageHub

from ptnt_mm.engine.hooks.data_changes import RememberDataHook

from .test_bad_weights import quick
from .toy import toy_config, train

BEGAN = 'is not what this training began with: this is another experiment now'
WRITTEN = 'were written since, with the same names and sizes. If their content changed: this is'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two splits, with annotation files, images and masks."""
    root = tmp_path / 'data'
    for split in ('train', 'val'):
        for folder in ('images', 'masks'):
            (root / folder / split / 'city').mkdir(parents=True)
            for number in range(3):
                file = root / folder / split / 'city' / f'{number}.png'
                file.write_bytes(f'{folder} {split}'.encode() + b'.' * number)
        (root / f'{split}.json').write_text(f'{{"split": "{split}"}}')
    return root


def loaders(root: Path) -> dict:
    def loader(split: str) -> dict:
        prefix = dict(img_path=f'images/{split}', seg_map_path=f'masks/{split}')
        return dict(dataset=dict(data_root=str(root), ann_file=f'{split}.json', data_prefix=prefix))

    return dict(train_dataloader=loader('train'), val_dataloader=loader('val'))


def warnings(caplog, hub: MessageHub, root: Path) -> list[str]:
    """What is said when a training begins, or goes on, with this data."""
    caplog.clear()
    runner = SimpleNamespace(
        cfg=Config(loaders(root)), message_hub=hub, logger=logging.getLogger('data')
    )
    RememberDataHook().before_train(runner)
    return [record.getMessage() for record in caplog.records]


def rewritten(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    os.utime(file, (1e9, 1e9))


@pytest.mark.parametrize(
    ('change', 'expected'),
    [
        (lambda root: None, []),
        (lambda root: os.utime(root / 'train.json', (1e9, 1e9)), []),
        (
            lambda root: rewritten(root / 'train.json', b'{"split": "TRAI"}'),
            ['train.json ' + BEGAN],
        ),
        (lambda root: rewritten(root / 'val.json', b'{}'), ['val.json ' + BEGAN]),
        (
            lambda root: shutil.copyfile(root / 'val.json', root / 'train.json'),
            ['train.json ' + BEGAN],
        ),
        (
            lambda root: rewritten(root / 'images/train/city/0.png', b'IMAGES TRAIN'),
            ['images/train ' + WRITTEN],
        ),
        (
            lambda root: rewritten(root / 'images/val/city/0.png', b'cut'),
            ['images/val ' + BEGAN],
        ),
        (
            lambda root: (root / 'masks/train/city/0.png').rename(root / 'masks/train/city/9.png'),
            ['masks/train ' + BEGAN],
        ),
        (lambda root: (root / 'masks/val/city/2.png').unlink(), ['masks/val ' + BEGAN]),
        (lambda root: (root / 'masks/val/more.png').symlink_to('nowhere'), ['masks/val ' + BEGAN]),
    ],
)
def test_what_changed_is_named(data: Path, caplog, change: Callable, expected: list[str]):
    hub = MessageHub('data')
    assert warnings(caplog, hub, data) == []
    change(data)
    said = warnings(caplog, hub, data)
    assert len(said) == len(expected)
    assert all(f'{data}/{end}' in text for end, text in zip(expected, said, strict=True))


def test_data_that_was_moved_or_copied_is_the_same(data: Path, tmp_path: Path, caplog):
    hub = MessageHub('moved')
    warnings(caplog, hub, data)
    copied = tmp_path / 'elsewhere'
    shutil.copytree(data, copied, copy_function=shutil.copyfile)
    assert warnings(caplog, hub, copied) == []
    (copied / 'images' / 'train' / 'new.png').touch()
    hub = MessageHub('moved and changed')
    warnings(caplog, hub, data)
    assert [text.startswith(f'{copied}/images/train {BEGAN}') for text in
            warnings(caplog, hub, copied)] == [True]  # fmt: skip


@pytest.mark.parametrize('known', [None, 'text', [1], {}])
def test_a_checkpoint_that_knows_nothing(data: Path, caplog, known: object):
    hub = MessageHub('unknown')
    hub.update_info('data_sha256', known)
    assert warnings(caplog, hub, data) == []


def test_it_is_in_the_checkpoint(data: Path, tmp_path: Path):
    def config(epochs: int) -> Config:
        config = quick(toy_config(tmp_path / 'run', epochs))
        config.train_dataloader.dataset.update(loaders(data)['train_dataloader']['dataset'])
        config.custom_hooks += [dict(type='RememberDataHook')]
        return config

    train(config(1))
    (data / 'images' / 'train' / 'more.png').touch()
    continued = config(2)
    continued.resume, continued.load_from = True, str(tmp_path / 'run' / 'epoch_1.pth')
    train(continued)
    logs = [file.read_text() for file in sorted((tmp_path / 'run').glob('*/*.log'))]
    assert sum(f'{data}/images/train {BEGAN}' in log for log in logs) == 1
