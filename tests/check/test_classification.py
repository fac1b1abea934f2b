"""A classifier's folders, labels, evaluators and training step; each fault is planted."""

import shutil
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config, ConfigDict

from demo.crops import make_crops
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.network import check_normalisation
from ptnt_mm.workbench.check.weights import describe_start
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import SPLITS, Demo, assert_one_names, counted, own, settings

ERROR, WARNING = Severity.ERROR, Severity.WARNING


class LabelDemo(Demo):
    """The demo set's objects, each as a separate picture."""

    def settings(self) -> dict:
        roots = {f'{split}_dataloader.dataset.data_root': f'{self.folder}/' for split in SPLITS}
        # A warm-up for few images.
        return {**roots, 'param_scheduler.0.end': 10, **self.options}


@pytest.fixture(scope='module')
def cut(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import_host('mmpretrain')
    folder = tmp_path_factory.mktemp('crops') / 'crops'
    make_crops(made, folder)
    return folder


@pytest.fixture
def labels(cut: Path, tmp_path: Path) -> LabelDemo:
    folder = Path(shutil.copytree(cut, tmp_path / 'crops'))
    return LabelDemo(folder, 'demo_classifier_ptnt_ti')


def one(demo: Demo, name: str = 'cup') -> Path:
    return min((demo.folder / 'train' / name).iterdir())


def listed(demo: Demo, lines: str) -> None:
    (demo.folder / 'list.txt').write_text(lines)
    demo.set(ann_file='list.txt', data_prefix='train')


FAULTS = [
    (lambda d: shutil.rmtree(d.folder / 'train'), ERROR, 'train', 'crops/train'),
    (lambda d: shutil.rmtree(d.folder / 'val' / 'cup'), ERROR, 'val and test', '(3)'),
    (lambda d: one(d).write_bytes(b'\xff\xd8 no image'), ERROR, 'train', 'cup/000001_3.jpg'),
    (
        own(metainfo=dict(classes=('coin', 'ball', 'crate', 'cup'))),
        ERROR,
        'train',
        'ball, coin, crate, cup',
    ),
    (own(metainfo=dict(classes=('a', 'b', 'c', 'd'))), ERROR, 'val and test', 'a, b, c, d'),
    (settings({'model.head.num_classes': 1000}), ERROR, 'model.head.num_classes', '1000'),
    (
        settings({'model.data_preprocessor.num_classes': 5}),
        ERROR,
        'model.data_preprocessor.num_classes',
        '5',
    ),
    (
        settings({'data_preprocessor': dict(num_classes=5)}),
        ERROR,
        'data_preprocessor.num_classes',
        '5',
    ),
    (lambda d: listed(d, 'cup/x.jpg 98765'), ERROR, 'train', '98765'),
    (
        lambda d: listed(d, f'{one(d).relative_to(d.folder / "train")} 3'),
        WARNING,
        'train',
        'ball, coin, crate',
    ),
    (lambda d: listed(d, ''), ERROR, 'train', 'list.txt'),
    (lambda d: listed(d, 'cup/none.jpg 3'), ERROR, 'train', 'cup/none.jpg'),
    (settings({'val_evaluator.topk': (1, 5)}), ERROR, 'val', 'topk'),
    (settings({'val_evaluator': []}), ERROR, 'val', 'evaluator'),
    (settings({'val_evaluator.type': 'Acuracy'}), ERROR, 'val_evaluator.type', "'Accuracy'"),
    (
        lambda d: shutil.copy(one(d), d.folder / 'val' / 'cup'),
        WARNING,
        'val and test',
        'cup/000001_3.jpg',
    ),
]


@pytest.mark.parametrize(('plant', 'severity', 'where', 'value'), FAULTS)
def test_a_planted_fault_is_found(labels: LabelDemo, plant, severity, where: str, value: str):
    plant(labels)
    assert_one_names(labels.findings('images'), severity, where, value)


def test_only_classes_without_images_are_named(labels: LabelDemo):
    shutil.rmtree(labels.folder / 'train' / 'cup')
    (labels.folder / 'train' / 'cup').mkdir()
    findings = labels.findings('images')
    assert_one_names(findings, WARNING, 'train', 'cup')
    assert not any('coin' in finding.what for finding in counted(findings))


def test_an_intact_set_passes_up_to_a_training_step(labels: LabelDemo):
    labels.options['param_scheduler.0.end'] = 5  # its epochs have two iterations
    findings = labels.findings('images', 'trial', 'heads', 'weights', 'model')
    assert not counted(findings)
    text = '\n'.join(map(str, findings))
    assert 'train: 4 classes of ' in text and 'val and test: measured by Accuracy' not in text
    assert 'a training step: ' in text and 'val: an image is evaluated: accuracy/top1' in text


def test_data_that_is_fetched_is_left_alone(labels: LabelDemo, tmp_path: Path):
    labels.name, labels.folder = 'classifier_tnt_s_384_cifar10', tmp_path / 'cifar10'
    # The published weights are at an address, which is not downloaded.
    notes = [str(f) for f in labels.findings('trial') if f.severity is Severity.NOTE]
    left = 'train: CIFAR10 downloads its files itself: its images and labels were not checked'
    assert left in notes
    assert 'a training step: not tried: CIFAR10 has not downloaded its files yet' in notes
    assert not labels.folder.exists()


def test_files_that_only_the_data_sets_class_knows_are_looked_for(labels: LabelDemo):
    labels.name = 'classifier_tnt_s_384_pets'
    found = '\n'.join(map(str, counted(labels.findings())))
    assert 'annotations/trainval.txt does not exist' in found
    assert 'annotations/test.txt does not exist' in found


def scaled(dataset: str, **scale: object) -> Config:
    settings = dict(mean=[127.5] * 3, std=[127.5] * 3, **scale)
    init = dict(type='Pretrained', checkpoint='w.pth')
    backbone = dict(type='mmengine.TNT', arch='small', init_cfg=init)
    steps = [] if dataset == 'CIFAR10' else [dict(type='LoadImageFromFile')]
    data = dict(type=dataset, pipeline=[*steps, dict(type='PackInputs')])
    return Config(
        dict(
            default_scope='mmpretrain',
            model=dict(data_preprocessor=settings, backbone=backbone),
            train_dataloader=dict(dataset=data),
        )
    )


@pytest.mark.parametrize(
    ('dataset', 'scale', 'where'),
    [
        ('ImageNet', dict(to_rgb=True), []),
        ('ImageNet', dict(bgr_to_rgb=True), ['model.data_preprocessor.to_rgb']),
        ('CIFAR10', {}, []),
    ],
)
def test_files_are_turned_into_rgb_by_mmpretrains_own_setting(dataset, scale, where: list):
    found = counted(list(check_normalisation(ConfigView(scaled(dataset, **scale)))))
    assert [finding.where for finding in found] == where


def test_a_pretraining_needs_no_weights():
    imagenet = Config(dict(train_dataloader=dict(dataset=ConfigDict(type='ImageNet'))))
    assert [f.severity for f in describe_start(ConfigView(imagenet), None)] == [Severity.OK]
    other = Config(dict(train_dataloader=dict(dataset=ConfigDict(type='CustomDataset'))))
    assert [f.severity for f in describe_start(ConfigView(other), None)] == [Severity.NOTE]


def test_the_start_names_the_weights():
    other = Config(dict(train_dataloader=dict(dataset=ConfigDict(type='CustomDataset'))))
    (finding,) = describe_start(ConfigView(other), 'tiny.pth')
    assert finding.severity == Severity.OK and 'tiny.pth' in str(finding)


def test_labels_of_numpy_and_lists_are_counted(labels: LabelDemo):
    """As in mmpretrain's DTD and StanfordCars."""
    from mmpretrain.datasets import CustomDataset

    kinds = cycle((int, np.int64, np.uint8, lambda number: [number], lambda n: np.array([n])))

    class OtherLabels(CustomDataset):
        def load_data_list(self) -> list[dict]:
            entries = zip(super().load_data_list(), kinds, strict=False)
            return [dict(entry, gt_label=kind(entry['gt_label'])) for entry, kind in entries]

    usual = [finding for finding in labels.findings() if 'train: 4 classes of' in str(finding)]
    labels.set(type=OtherLabels)
    assert usual and usual[0] in labels.findings()
