"""Projects are created completely or not at all; their configs are checked, and found by folder."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from data import made
from data.formats.class_masks import colour_masks
from data.formats.coco import coco, label_studio
from data.formats.cvat import cvat_shapes
from data.formats.folders import class_folders
from data.formats.voc import voc, voc_beside
from data.formats.yolo import darknet, yolo_roboflow
from micro import MICRO_ARCH
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS, DefaultScope
from PIL import Image

from ptnt_mm.api import create_project
from ptnt_mm.models import PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity, of_kind
from ptnt_mm.workbench.check.inspection import check
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import SPLITS, ConfigView
from ptnt_mm.workbench.data.labels import Outcome
from ptnt_mm.workbench.engine.work_dir import checkpoint_to_use, work_dir_of
from ptnt_mm.workbench.project.backbones import find_backbone


def files_of(root: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in root.rglob('*') if file.is_file()}


@pytest.mark.parametrize(
    ('make', 'host'),
    [
        (yolo_roboflow, 'mmdet'),
        (label_studio, 'mmdet'),
        (colour_masks, 'mmseg'),
        (class_folders, 'mmpretrain'),
    ],
)
def test_a_project_passes_the_check_and_the_data_is_not_touched(tmp_path: Path, make, host: str):
    data = make(tmp_path / 'my data')
    before = files_of(data)
    file = create_project(data, tmp_path / 'project', size=64)
    assert len(file.read_text().splitlines()) <= 40
    # The folder replaces its config.
    config = read_config(str(tmp_path / 'project'))
    assert config.default_scope == host
    assert not of_kind(check(config), Severity.ERROR)
    assert files_of(data) == before


@pytest.mark.parametrize(('images', 'epochs'), [(2, 1), (2, 2), (4, 1)])
def test_a_schedule_of_one_iteration_or_a_few_has_no_warnings(
    images: int, epochs: int, untried, tmp_path: Path
):
    for i in range(images * 2):
        made.draw(tmp_path / 'data' / 'ab'[i % 2] / f'{i}.png', i)
    create_project(tmp_path / 'data', tmp_path / 'project', epochs=epochs, size=32)
    config = read_config(str(tmp_path / 'project'))
    found = [finding.where for finding in check(config) if finding.severity is Severity.WARNING]
    assert not [where for where in found if 'param_scheduler' in where]
    assert config.param_scheduler[-1].type == 'CosineAnnealingLR'
    assert config.param_scheduler[-1].T_max == epochs


def test_many_class_names_go_into_a_separate_file(untried, tmp_path: Path):
    data = coco(tmp_path / 'data')
    file = next(data.rglob('*.json'))
    content = json.loads(file.read_text())
    more = [dict(id=100 + i, name=f"a '{{{{ name }}}}' with braces {i}") for i in range(80)]
    content['categories'][0]['name'] = 'in two\nlines'
    file.write_text(json.dumps(content | dict(categories=content['categories'] + more)))
    printed: list[str] = []
    file = create_project(data, tmp_path / 'project', on_line=printed.append)
    assert all(line.isprintable() for line in printed)
    assert max(map(len, file.read_text().splitlines())) < 300
    config = Config.fromfile(file)
    names = config.train_dataloader.dataset.metainfo.classes
    assert names == config.classes and names[-80:] == tuple(category['name'] for category in more)
    assert config.model.bbox_head.num_classes == len(names)


@pytest.mark.parametrize('backbone', ['resnet18', 'pvtv2_b0', 'tnt_s'])
def test_other_backbones_are_wired_by_their_maps(
    untried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backbone: str
):
    monkeypatch.chdir(label_studio(tmp_path / 'data').parent)
    file = create_project(Path('data'), Path('project'), backbone=backbone, size=64)
    assert f'--backbone {backbone} --size 64`' in file.read_text().splitlines()[0]
    found = check(Config.fromfile(file), thorough=False)
    assert not of_kind(found, Severity.ERROR)


def test_a_backbone_may_be_a_class_with_dicts_and_lists():
    norm = 'norm_cfg=dict(type="GN", num_groups=32)'
    settings = find_backbone(
        f'mmdet.ResNet(depth=18, {norm}, out_indices=[2])', None, 'mmdet'
    ).settings
    assert settings['norm_cfg'] == dict(type='GN', num_groups=32)
    assert settings['out_indices'] == [2]


def test_a_row_without_its_colours_is_named(tmp_path: Path, capsys, monkeypatch):
    own = Config(dict(backbones=dict(own=dict(settings={}, std=[1, 1, 1]))))
    monkeypatch.setattr(Config, 'fromfile', lambda file: own)
    words = [str(darknet(tmp_path / 'data')), str(tmp_path / 'project'), '--backbone', 'own']
    assert run('new', words) == 1
    said = capsys.readouterr().err
    assert re.search(r'the row of own in .*backbones.py has no mean: a row', said)


def test_a_project_can_be_moved(untried, tmp_path: Path):
    create_project(darknet(tmp_path / 'data'), tmp_path / 'project')
    (tmp_path / 'project').rename(tmp_path / 'other')
    config = read_config(str(tmp_path / 'other'))
    assert config.work_dir == str(tmp_path / 'other' / 'work_dir')
    assert Path(config.val_evaluator.ann_file).is_file()


@pytest.mark.parametrize('make', [yolo_roboflow, label_studio, colour_masks, class_folders])
def test_its_images_can_be_moved(untried, tmp_path: Path, make):
    data = make(tmp_path / 'data')
    create_project(data, tmp_path / 'project')
    data.rename(tmp_path / 'elsewhere')
    with pytest.raises(UserError, match='data_root=FOLDER.*config.py'):
        ConfigView(read_config(tmp_path / 'project')).require_files(SPLITS)
    view = ConfigView(read_config(tmp_path / 'project', None, tmp_path / 'elsewhere'))
    view.require_files(SPLITS)
    with DefaultScope.overwrite_default_scope(view.scope):
        for split in SPLITS:
            assert DATASETS.build(view.split(split).dataset)[0]['inputs'].numel()


def test_masks_of_objects_become_masks_of_classes(untried, tmp_path: Path):
    data = cvat_shapes(tmp_path / 'data')
    create_project(data, tmp_path / 'project', task='semantic')
    config = read_config(str(tmp_path / 'project'))
    assert config.classes == ('background', 'cell', 'dot')
    for i in range(made.COUNT):
        (file,) = (tmp_path / 'project' / 'labels' / 'masks').rglob(f'im{i}.png.png')
        drawn = np.asarray(Image.open(file))
        assert (drawn != made.class_mask(i)).mean() < 0.02  # COCO's polygons include their border


@pytest.mark.parametrize('balance', ['0.25', '0'])
def test_images_of_a_rare_class_are_repeated(untried, tmp_path: Path, balance: str):
    for split, count in (('train', 24), ('val', 2)):
        made.draw_all(tmp_path / 'data' / split, count=count)
        size = dict(zip(('width', 'height'), made.SIZE, strict=True))
        images = [dict(id=i, file_name=f'im{i}.png', **size) for i in range(count)]
        # A cell in every image, a dot in the first.
        kinds = [(i, 1) for i in range(count)] + [(0, 2)]
        box = dict(bbox=[4, 6, 36, 44], area=36 * 44, iscrowd=0)
        objects = [
            dict(box, id=n, image_id=i, category_id=k) for n, (i, k) in enumerate(kinds, start=1)
        ]
        names = [dict(id=1, name='cell'), dict(id=2, name='dot')]
        labels = dict(images=images, annotations=objects, categories=names)
        file = tmp_path / 'data' / 'annotations' / f'instances_{split}.json'
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(labels))
    file = create_project(tmp_path / 'data', tmp_path / 'project', epochs=1)
    file.write_text(
        re.sub(r'^balance = 0.25 ', f'balance = {balance}', file.read_text(), flags=re.M)
    )
    config = read_config(file)
    with DefaultScope.overwrite_default_scope('mmdet'):
        built = DATASETS.build(config.train_dataloader.dataset)
    # The root of 0.25 / (1 / 24), rounded up, is 3.
    assert len(built) == (26 if balance == '0.25' else 24)
    assert not of_kind(check(config, thorough=False), Severity.ERROR)


def test_what_is_left_out_is_listed(untried, tmp_path: Path):
    data = voc(tmp_path / 'data')
    file = data / 'Annotations' / 'im0.xml'
    file.write_text(file.read_text().replace('<xmin>4', '<xmin>94'))
    lines: list[str] = []
    create_project(data, tmp_path / 'project', on_line=lines.append)
    listed = (tmp_path / 'project' / 'problems.txt').read_text()
    assert 'Annotations/im0.xml: boxes' in listed and Outcome.LEFT_OUT in listed
    assert any(Outcome.LEFT_OUT in line for line in lines)
    assert any('(1 cell): im0.xml (cell [93.5, 5.5, ' in line for line in lines)


def test_truncated_images_are_left_out(untried, tmp_path: Path):
    data = voc_beside(tmp_path / 'data')
    for name in ('train/im0.png', 'valid/im4.png'):
        file = data / name
        file.write_bytes(file.read_bytes()[:-1000])
    lines: list[str] = []
    file = create_project(data, tmp_path / 'project', on_line=lines.append)
    assert any(
        line.startswith('  2 images that cannot be opened') and 'im0.png (' in line
        for line in lines
    )
    assert not of_kind(check(read_config(file)), Severity.ERROR)


def test_difficult_objects_are_crowds(untried, tmp_path: Path):
    data = voc(tmp_path / 'data')
    for file in (data / 'Annotations').iterdir():
        file.write_text(file.read_text().replace('<difficult>0', '<difficult>1', 1))
    lines: list[str] = []
    create_project(data, tmp_path / 'project', on_line=lines.append)
    assert any(f'{made.COUNT} difficult' in line for line in lines)
    content = json.loads((tmp_path / 'project' / 'labels' / 'train.json').read_text())
    assert sorted({one['iscrowd'] for one in content['annotations']}) == [0, 1]


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (
            dict(backbone='resnet19'),
            r"unknown backbone 'resnet19': did you mean 'resnet18'.* PyramidTNT\(arch='tiny'\)",
        ),
        (dict(backbone='NoSuchNetwork'), 'NoSuchNetwork'),
        (dict(weights='/nowhere.pth'), '/nowhere.pth'),
        (dict(weights=Path('/nowhere.pth')), '/nowhere.pth'),
        (dict(backbone='cpvt_ti', weights='published'), 'cpvt_ti has none'),
        (dict(weights='ptnt_ti'), 'no direct address: open https://pan.baidu.com'),
        (
            dict(weights='tnt_z'),
            "`ptnt weights` has no such name: did you mean 'tnt_",
        ),
        (dict(task='instance'), 'only boxes'),
        (dict(format='cvat'), 'CVAT|annotations'),
    ],
)
def test_options_that_cannot_be_met(tmp_path: Path, options: dict, words: str):
    data = darknet(tmp_path / 'data')
    with pytest.raises(UserError, match=words):
        create_project(data, tmp_path / 'project', **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data']


@pytest.mark.parametrize(
    ('name', 'value', 'least'),
    [
        ('size', -3, 32),
        ('size', 10, 32),
        ('size', 320.0, 32),
        ('size', True, 32),
        ('epochs', 0, 1),
        ('epochs', '3', 1),
    ],
)
def test_numbers_are_integers_from_a_least_value(
    tmp_path: Path, name: str, value: object, least: int
):
    with pytest.raises(UserError, match=f'`{name}={value!r}`: expected an integer from {least}$'):
        create_project(darknet(tmp_path / 'data'), tmp_path / 'project', **{name: value})
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data']


def test_the_command_refuses_the_same_numbers(tmp_path: Path, capsys):
    data = darknet(tmp_path / 'data')
    with pytest.raises(SystemExit, match='2'):
        run('new', [str(data), str(tmp_path / 'project'), '--size', '10'])
    assert "--size: '10' is not an integer from 32" in capsys.readouterr().err


def test_nothing_is_written_into_the_data_or_over_a_folder(tmp_path: Path):
    data = darknet(tmp_path / 'data')
    with pytest.raises(UserError, match='where ptnt new writes nothing'):
        create_project(data, data / 'project')
    (tmp_path / 'project').mkdir()
    (tmp_path / 'project' / 'mine.txt').touch()
    with pytest.raises(UserError, match='exists'):
        create_project(data, tmp_path / 'project')
    with pytest.raises(UserError, match='does not exist'):
        create_project(tmp_path / 'nowhere', tmp_path / 'other')


def test_a_failure_leaves_nothing_behind(untried, tmp_path: Path):
    def stop(line: str) -> None:
        if line.startswith('  training: '):  # the files are written by then
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_project(darknet(tmp_path / 'data'), tmp_path / 'project', on_line=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data']


def test_the_command_shows_what_it_found_and_what_comes_next(untried, tmp_path: Path, capsys):
    data, project = darknet(tmp_path / 'data'), tmp_path / 'project'
    assert run('new', [str(data), str(project), '--epochs', '3', '--size', '320']) == 0
    shown = capsys.readouterr().out
    assert 'YOLO' in shown and '  training: 3 epochs (as requested), 2 images per step' in shown
    assert f'ptnt train {project}' in shown and 'no problems found' in shown
    assert run('new', [str(data), str(project)]) == 1


@MODELS.register_module()
class Forgetful(PyramidTNT):
    """It cannot be trained."""

    def forward(self, x: torch.Tensor):
        if self.training:
            raise IndexError('no such stage')
        return super().forward(x)


def test_errors_come_before_training(untried, tmp_path: Path, capsys):
    data, project = darknet(tmp_path / 'data'), tmp_path / 'project'
    words = ('--size', '64', '--backbone', f'Forgetful(arch={MICRO_ARCH!r})')
    assert run('new', [str(data), str(project), *words]) == 1
    shown = capsys.readouterr().out
    assert 'no such stage' in shown
    assert shown.endswith(f'correct the errors above, then check again:\n  ptnt check {project}\n')
    assert 'ptnt train' not in shown


def test_the_best_checkpoint_is_found_by_the_folder(tmp_path: Path):
    config = Config(dict(work_dir=str(tmp_path / 'work_dir')))
    with pytest.raises(UserError, match='contains no checkpoint'):
        checkpoint_to_use(config, None)
    (tmp_path / 'work_dir').mkdir()
    for name in ('epoch_3.pth', 'best_coco_bbox_mAP_epoch_2.pth'):
        torch.save({'state_dict': {}}, tmp_path / 'work_dir' / name)
    assert checkpoint_to_use(config, None).endswith('best_coco_bbox_mAP_epoch_2.pth')
    # A truncated file is not a checkpoint.
    (tmp_path / 'work_dir' / 'best_coco_bbox_mAP_epoch_2.pth').write_bytes(b'PK')
    assert checkpoint_to_use(config, None).endswith('epoch_3.pth')
    assert checkpoint_to_use(config, 'mine.pth') == 'mine.pth'
    assert work_dir_of(tmp_path) == tmp_path / 'work_dir'
    assert work_dir_of(tmp_path / 'work_dir') == tmp_path / 'work_dir'
