"""`ptnt pretrain`: a backbone learns from a teacher, on images without labels."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
from micro import MICRO_ARCH
from mmengine.config import Config
from PIL import Image
from safetensors import safe_open

from ptnt_mm.api import pretrain
from ptnt_mm.models import PyramidTNT
from ptnt_mm.registry import MODELS, TRANSFORMS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.files import as_safetensors, describe_checkpoint
from ptnt_mm.weights.pretrained import load_pretrained
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.data.image_files import find_images
from ptnt_mm.workbench.project.pretrain import examine, find_teacher, write_weights

STUDENT = f'PyramidTNT(arch={MICRO_ARCH!r}, out_norms=True)'
QUICK = dict(
    backbone=STUDENT,
    teacher=f'PyramidTNT(arch={MICRO_ARCH!r})',
    views=16,
    size=64,
    batch=4,
    settings={'train_dataloader.num_workers': 0, 'optim_wrapper.optimizer.lr': 1e-2},
)


@pytest.fixture(scope='module')
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of several kinds, among them some that cannot be read."""
    folder = tmp_path_factory.mktemp('photographs')
    (folder / 'deeper').mkdir()
    draw = np.random.default_rng(0)
    for number, sides in enumerate([(40, 60), (70, 30), (2, 500), (1, 1), (64, 64)]):
        pixels = draw.integers(0, 256, (*sides, 3), np.uint8)
        Image.fromarray(pixels).save(folder / 'deeper' / f'{number}.png')
    Image.fromarray(draw.integers(0, 2**16, (30, 30)).astype(np.uint16)).save(folder / '16.png')
    for number in range(12):
        (folder / f'broken{number}.jpg').write_bytes(draw.bytes(50 * number))
    return folder


@pytest.fixture(scope='module')
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the teacher's weights."""
    torch.manual_seed(1)
    file = tmp_path_factory.mktemp('teacher') / 'teacher.pth'
    torch.save(PyramidTNT(MICRO_ARCH).state_dict(), file)
    return file


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stays after the test: MMEngine's logger of the last run keeps its file."""
    return tmp_path_factory.mktemp('runs')


def run(images: Path, file: Path, weights_of_teacher: Path, **options) -> dict:
    """Pretrain, and return the weights."""
    given = {
        **QUICK,
        'teacher_weights': weights_of_teacher,
        'work_dir': file.parent / 'run',
        **options,
    }
    return read_checkpoint(pretrain(images, file, **given))['state_dict']


def test_the_weights_start_the_same_backbone(images: Path, teacher: Path, place: Path):
    weights = run(images, place / 'start.pth', teacher)
    student = PyramidTNT(MICRO_ARCH, out_norms=True)
    report = load_pretrained(student, place / 'start.pth', logger='silent')
    assert not report.missing and not report.unused
    assert torch.equal(student.norm3.weight, weights['norm3.weight'])
    about = dict(describe_checkpoint(str(place / 'start.pth')))
    assert about['images'] == 6 and about['views'] == 16 and about['teacher'] == QUICK['teacher']
    assert 'value_range' not in about
    log = next((place / 'run').glob('*/*.log')).read_text()
    assert log.count('cannot be read and is skipped') >= 1


def deep(values: np.ndarray, file: Path) -> None:
    tifffile.imwrite(file.with_suffix('.tif'), values)


@pytest.mark.parametrize(
    ('save', 'expected', 'named'),
    [
        (lambda grey, file: deep((grey * 16).astype(np.uint16), file), (0, 4095), '16-bit pixels'),
        (lambda grey, file: deep((grey * 4).astype(np.uint16), file), (0, 1023), '16-bit pixels'),
        (lambda grey, file: deep((grey * 64).astype(np.uint16), file), (0, 16383), 'mmcv leaves'),
        (
            lambda grey, file: deep((grey / 255).astype(np.float32), file),
            (0.0, 1.0),
            '32-bit float',
        ),
        (lambda grey, file: deep((grey * 257).astype(np.uint16), file), None, None),
        (lambda grey, file: deep(grey.astype(np.uint8), file), None, None),
    ],
)
def test_the_range_of_values_is_found_as_for_a_project(
    tmp_path: Path, save: Callable, expected: tuple | None, named: str | None
):
    grey = np.arange(4096).reshape(64, 64) / 4095 * 255
    for number in range(3):
        save(grey, tmp_path / str(number))
    number, value_range, lines = examine(find_images(tmp_path))
    assert (number, value_range) == (3, expected)
    assert len(lines) == bool(named) and all(named in line for line in lines)
    picture = loader(value_range)(dict(img_path=str(tmp_path / '0.tif')))['picture']
    assert picture.getextrema() == ((0, 255),) * 3


def test_pictures_that_cannot_be_read_are_named_and_not_counted(images: Path, tmp_path: Path):
    shutil.copytree(images, tmp_path / 'all')
    for name in ('a.HEIC', 'b.heic', 'c.dng', 'notes.txt'):
        (tmp_path / 'all' / name).touch()
    number, value_range, lines = examine(find_images(tmp_path / 'all'))
    assert (number, value_range) == (6, None)
    shown = '\n'.join(lines)
    assert '2 .heic pictures left out' in shown and '1 .dng picture left out' in shown
    assert '12 images that cannot be opened, left out: broken' in shown and 'notes' not in shown
    for file in (tmp_path / 'all').rglob('*.png'):
        file.unlink()
    with pytest.raises(UserError, match='no image that can be read(.|\n)*2 .heic(.|\n)*12 images'):
        examine(find_images(tmp_path / 'all'))


def test_the_range_reaches_the_run_and_the_card(teacher: Path, place: Path):
    (place / 'photos').mkdir()
    grey = np.random.default_rng(0).random((4, 70, 70))
    for number, values in enumerate(grey):
        deep((values * 4095).astype(np.uint16), place / 'photos' / str(number))
    lines: list[str] = []
    load = 'train_dataloader.dataset.pipeline.0'
    for name, changes, expected in (
        ('found', {}, (0, 4095)),
        ('stated', {f'{load}.value_range': [0, 2000]}, [0, 2000]),
    ):
        options = dict(settings=QUICK['settings'] | changes, work_dir=place / name)
        run(
            place / 'photos',
            place / f'{name}.pth',
            teacher,
            **options,
            views=4,
            on_line=lines.append,
        )
        about = dict(describe_checkpoint(str(place / f'{name}.pth')))
        assert about['value_range'] == f'0 to {expected[1]}'
        (used,) = (place / name).glob('*/vis_data/config.py')
        step = Config.fromfile(used).train_dataloader.dataset.pipeline[0]
        assert step == dict(type='LoadPicture', value_range=expected)
    assert len(lines) == 4 and all('values from' in line for line in lines[::2])
    assert set(lines[1::2]) == {'warning: only 4 images; a few thousand varied images work best'}


def loader(value_range: object) -> Callable[[dict], dict]:
    return TRANSFORMS.build(dict(type='LoadPicture', value_range=value_range))


@pytest.mark.parametrize('value_range', [(9, 1), 4095, ('0', '9')])
def test_bad_ranges_are_refused(value_range: object):
    with pytest.raises(UserError, match='expected two finite numbers'):
        loader(value_range)


def test_a_run_that_was_stopped_continues_as_if_it_had_not_been(
    images: Path, teacher: Path, place: Path
):
    often = QUICK['settings'] | {'default_hooks.checkpoint.interval': 2}
    undisturbed = run(images, place / 'a.pth', teacher, settings=often)
    there = dict(work_dir=place / 'stopped')
    cut_off = often | {'train_cfg.max_iters': 2}
    run(images, place / 'b.pth', teacher, settings=cut_off, **there)
    resumed = run(images, place / 'b.pth', teacher, settings=often, resume='auto', **there)
    assert resumed.keys() == undisturbed.keys()
    assert all(torch.equal(resumed[key], undisturbed[key]) for key in resumed)


def test_a_classifier_of_timm_teaches_maps_and_logits(images: Path, place: Path):
    file = place / 'start.safetensors'
    settings = QUICK['settings'] | {'default_hooks.logger.interval': 1}
    quick = QUICK | dict(teacher='efficientnet_lite0', views=4, settings=settings)
    pretrain(images, file, **quick, work_dir=place / 'run')
    log = next((place / 'run').glob('*/vis_data/scalars.json')).read_text()
    names = json.loads(log.splitlines()[0]).keys()
    assert names >= {'loss_logits', *(f'loss_map{i}' for i in range(4))}
    with safe_open(file, framework='pt') as stored:
        assert stored.get_tensor('norm3.weight').dtype == torch.float16
    assert dict(describe_checkpoint(str(file)))['teacher'] == 'efficientnet_lite0'
    load_pretrained(PyramidTNT(MICRO_ARCH), file, logger='silent')


def test_values_beyond_float16_stay_in_float32(place: Path):
    weights = dict(large=torch.tensor([7e4]), small=torch.tensor([0.5]), count=torch.tensor(3))
    write_weights(place / 'a.safetensors', weights, {})
    found = read_checkpoint(place / 'a.safetensors')
    assert {key: weight.dtype for key, weight in found.items()} == dict(
        large=torch.float32, small=torch.float16, count=torch.int64
    )


@pytest.mark.parametrize('card', ['[' * 100_000, '{"unused": "nothing", "views": [1]}', '3'])
def test_a_strangers_card_says_nothing_else(place: Path, card: str):
    file = place / 'a.safetensors'
    file.write_bytes(as_safetensors(dict(other=torch.ones(1)), dict(card=card)))
    about = dict(describe_checkpoint(str(file)))
    assert about['unused'] != 'nothing' and 'views' not in about


def test_a_trained_detector_teaches(teacher: Path, place: Path):
    project = place / 'project.py'
    scale = dict(mean=[1.0] * 3, std=[2.0] * 3, bgr_to_rgb=True)
    backbone = dict(type='PyramidTNT', arch=MICRO_ARCH)
    model = dict(type='GFL', data_preprocessor=scale, backbone=backbone)
    project.write_text(f"default_scope = 'mmdet'\nmodel = {model!r}\nwork_dir = '{place}/none'\n")
    found = find_teacher(str(project), teacher)
    assert (found['mean'], found['std']) == (scale['mean'], scale['std'])
    assert found['backbone']['init_cfg']['checkpoint'] == str(teacher)
    with pytest.raises(UserError, match='has no checkpoint: train it first'):
        find_teacher(str(project))
    with pytest.raises(UserError, match='has no checkpoint: train it first'):
        find_teacher('retinanet_ptnt_s_1x')
    project.write_text(project.read_text().replace("'bgr_to_rgb': True", "'bgr_to_rgb': False"))
    with pytest.raises(UserError, match='expected bgr_to_rgb=True'):
        find_teacher(str(project), teacher)


@pytest.mark.parametrize('head', ['bbox_head.bias', 'head.fc.bias'])
def test_a_trained_network_of_timm_teaches(place: Path, head: str):
    """A project's checkpoint has it as ``backbone.network``."""
    settings = dict(type='TimmFeatures', model='test_resnet', out_indices=(1, 2, 3, 4))
    learned = MODELS.build(settings).state_dict()
    state = {f'backbone.{key}': w for key, w in learned.items()} | {head: torch.ones(1)}
    torch.save(dict(state_dict=state, meta={}), place / 'epoch_1.pth')
    project = place / 'project.py'
    scale = dict(mean=[1.0] * 3, std=[2.0] * 3, bgr_to_rgb=True)
    model = dict(type='GFL', data_preprocessor=scale, backbone=settings)
    project.write_text(f"default_scope = 'mmdet'\nmodel = {model!r}\n")
    taught = MODELS.build(find_teacher(str(project), place / 'epoch_1.pth'))
    taught.init_weights()
    assert all(torch.equal(w, learned[key]) for key, w in taught.backbone.state_dict().items())
    with pytest.raises(UserError, match='is a file of weights: pass it as `teacher_weights`'):
        find_teacher(str(place / 'epoch_1.pth'))


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        (dict(views=0), '`views=0`: expected an integer from 1'),
        (dict(size=32), '`size=32`: expected an integer from 64'),
        (dict(batch=1), '`batch=1`: expected an integer from 2'),
        (dict(backbone='ptnt_xl'), 'ptnt_xl'),
        (
            dict(teacher='resnet18', teacher_weights=None),
            'not on this machine and cannot be downloaded',
        ),
        (dict(teacher_weights='none.pth'), 'there is no file none.pth'),
        (dict(teacher_weights='none'), '`teacher_weights=none`: expected a file'),
        (dict(teacher='resnet18'), 'teacher.pth does not fit the model ResNet'),
        (dict(weights='efficientnet_lite0'), 'does not fit the model PyramidTNT'),
        (dict(settings={'modle.mosaic': 0}), "did you mean 'model'"),
    ],
)
def test_refusals(images: Path, teacher: Path, place: Path, options: dict, said: str):
    with pytest.raises(UserError, match=said):
        run(images, place / 'a.pth', teacher, **options)
    assert not any(place.iterdir())


def test_files_and_folders_that_will_not_do(images: Path, teacher: Path, place: Path):
    with pytest.raises(UserError, match=r'expected a name that ends in \.safetensors or \.pth'):
        run(images, place / 'weights.bin', teacher)
    (place / 'a.pth').write_text('mine')
    with pytest.raises(UserError, match='exists'):
        run(images, place / 'a.pth', teacher)
    (place / 'empty').mkdir()
    with pytest.raises(UserError, match='empty contains no files'):
        run(place / 'empty', place / 'b.pth', teacher)
    with pytest.raises(UserError, match='a.pth is a file: expected a folder of images'):
        run(place / 'a.pth', place / 'b.pth', teacher)
    assert (place / 'a.pth').read_text() == 'mine'
