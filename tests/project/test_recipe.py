"""The rules of a recipe, one by one, and the config that is written from them."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from repository import ROOT

from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject
from ptnt_mm.workbench.project.backbones import MeasuredBackbone, find_backbone
from ptnt_mm.workbench.project.create import copy_fragments
from ptnt_mm.workbench.project.detectors import find_detector
from ptnt_mm.workbench.project.profile import Profile, StepMemory, small_objects
from ptnt_mm.workbench.project.recipe import RECIPE_RULES, choose_recipe
from ptnt_mm.workbench.project.write import config_text

PYRAMID = MeasuredBackbone(
    name='ptnt_s',
    settings=dict(type='PyramidTNT', arch='small', out_norms=True),
    norm=dict(type='GN', num_groups=8),
    mean=[127.5] * 3,
    std=[127.5] * 3,
    no_decay=(),
    weights=None,
    lr=1e-3,
    channels=(128, 256, 512, 512),
    strides=(8, 16, 32, 64),
)
RESNET = replace(
    PYRAMID,
    name='resnet18',
    settings=dict(type='mmdet.ResNet', depth=18),
    mean=[123.675, 116.28, 103.53],
    std=[58.395, 57.12, 57.375],
    no_decay=(),
    channels=(64, 128, 256, 512),
    strides=(4, 8, 16, 32),
)
PLAIN = replace(PYRAMID, name='tnt_s', channels=(384,), strides=(16,))
PROFILE = Profile(
    task='detection',
    counts=dict(train=200, val=50, test=50),
    classes=('ball', 'cup'),
    objects=2000,
    most=10,
    size=(640, 480),
    small=0.1,
    smaller='one object in ten is',
    detector=find_detector(None, 'detection'),
    backbone=PYRAMID,
)
GIB = 2**30


def profile_with(task: str = 'detection', detector: str | None = None, **changes) -> Profile:
    return replace(PROFILE, task=task, detector=find_detector(detector, task), **changes)


def chosen(**changes):
    return {name: choice.value for name, choice in choose_recipe(profile_with(**changes)).items()}


@pytest.mark.parametrize(
    ('changes', 'size'),
    [
        (dict(small=0.1), (320, 256)),  # 160 would be too small for the image
        (dict(small=0.025), (832, 640)),
        (dict(small=0.002), (1280, 960)),  # twice the image
        (dict(small=0.002, size=(4000, 3000)), (1333, 992)),
        (dict(small=0.02, task='instance'), (384, 288)),  # its finest map has stride 4
        (dict(small=None, task='semantic'), (640, 480)),
        (dict(small=None, task='semantic', size=(2048, 1024)), (1024, 512)),
        (dict(task='classification', small=None), 224),
        (dict(task='classification', small=None, size=(40, 28)), 64),
        (dict(asked_size=800), (800, 608)),
        # The other side never makes images smaller than asked.
        (dict(asked_size=96), (96, 96)),
    ],
)
def test_size_follows_objects_and_images(changes: dict, size):
    assert chosen(**changes)['size'] == size


@pytest.mark.parametrize(
    ('changes', 'tile', 'size'),
    [
        (dict(size=(4000, 3000), small=0.005), 608, 640),  # of 20 pixels; 7 at 1333
        (dict(size=(4000, 3000), small=0.016), None, 1312),  # of 21 at 1312
        (dict(size=(1300, 900), small=0.005), None, 1333),  # nothing is lost by shrinking
        (dict(size=(4000, 3000), small=0.001), 320, 640),  # twice the tile, not more
        (dict(size=(12_000, 9_000), small=0.015), 1280, 320),
        (dict(size=(12_000, 9_000), small=0.005, task='instance'), 1280, 320),
        (dict(size=(4000, 3000), small=0.002, task='instance'), 640, 640),
        (dict(size=(4000, 3000), small=0.005, asked_tile=0), None, 1333),
        (dict(size=(4000, 3000), small=0.1, asked_tile=1000), 1000, 320),
        (dict(size=(4000, 3000), small=0.005, asked_tile=1000, asked_size=800), 1000, 800),
        (dict(size=(4000, 3000), small=0.005, asked_size=320), 320, 320),
        (dict(size=(4000, 3000), small=0.001, asked_size=320), 160, 320),
        (dict(size=(4000, 3000), small=None), None, 1024),
        (dict(size=(4000, 3000), small=0.001, task='semantic'), None, 1333),
    ],
)
def test_large_images_of_small_objects_are_cut(changes: dict, tile: int | None, size: int):
    profile = profile_with(**changes)
    assert choose_recipe(profile)['tile'].value == tile
    if tile is not None:
        profile = profile.of_tiles([LabelledImage(Path('a.png'), (tile, tile))] * 700)
    recipe = choose_recipe(profile)
    assert recipe['tile'].value == tile  # it is chosen from the whole images
    assert max(recipe['size'].value) == size
    assert recipe['epochs'].value == (17 if tile else 60)  # those of 700 tiles


def test_a_recipe_for_tiles_follows_from_tiles():
    profile = profile_with(size=(4000, 3000), small=0.005, most=3000)
    objects = tuple(LabelledObject('ball', (0, 0, 20, 20), ignored=i < 5) for i in range(95))
    tiles = [LabelledImage(Path('a.png'), (608, 608), objects=objects)] * 6000
    recipe = choose_recipe(profile.of_tiles(tiles))
    assert (recipe['width'].value, recipe['max_per_img'].value) == (256, 200)
    assert 'tile' in recipe['size'].because and 'tile' in recipe['epochs'].because


def test_small_objects_of_a_rare_class_count():
    def image(*objects: tuple[str, int]) -> LabelledImage:
        boxes = [LabelledObject(label, (0, 0, side, side)) for label, side in objects]
        return LabelledImage(Path('a.jpg'), (100, 50), objects=boxes)

    cells = [image(*[('cell', 40)] * 9)] * 30
    assert small_objects(cells) == (0.4, 'one object in ten is')
    assert small_objects([*cells, *[image(('platelet', 10))] * 12]) == (
        0.1,
        "half of 'platelet' are",
    )
    # Two objects may be mistakes.
    assert small_objects([*cells, image(('dot', 1), ('dot', 1))])[0] == 0.4
    assert small_objects([image()]) == (None, '')


def test_batch_follows_images_and_memory():
    counts = (3, 200, 2000, 10_000, 20_000)
    assert [chosen(counts=dict(train=n))['batch_size'] for n in counts] == [2, 2, 4, 8, 16]
    small = dict(memory=StepMemory(GIB, GIB), free=('the GPU', 4 * GIB))
    recipe = chosen(counts=dict(train=20_000), **small)
    assert (recipe['batch_size'], recipe['accumulation'], recipe['effective batch']) == (2, 8, 16)
    # BatchNorm cannot train on one image.
    tiny = dict(small, free=('the GPU', GIB))
    assert chosen(**tiny)['batch_size'] == 1
    assert chosen(**tiny, task='semantic')['batch_size'] == 2


def test_epochs_follow_images_and_weights():
    assert [chosen(counts=dict(train=n))['epochs'] for n in (10, 200, 118_000)] == [300, 60, 12]
    assert chosen(backbone=replace(PYRAMID, weights='a.pth'))['epochs'] == 30
    assert chosen(asked_epochs=7)['epochs'] == 7


def test_learning_rate_follows_batch_and_weights():
    assert chosen(counts=dict(train=2_000))['lr'] == 1e-3
    assert chosen()['lr'] == 7.1e-4
    assert chosen(counts=dict(train=20_000))['lr'] == 2e-3
    pretrained = replace(PYRAMID, weights='a.pth', lr=1e-4)
    assert chosen(backbone=pretrained, detector='atss')['lr'] == 7.1e-5


def test_a_pretrained_backbone_has_a_share_of_the_learning_rate_in_gfl():
    pretrained = dict(backbone=replace(PYRAMID, weights='a.pth', lr=2.8e-4))
    few, many = chosen(**pretrained), chosen(counts=dict(train=20_000), **pretrained)
    assert (few['lr'], few['lr_mult']) == (1e-3, 0.2)
    assert (many['lr'], many['lr_mult']) == (2e-3, 0.28), 'the rate of the head is at its limit'
    assert chosen()['lr_mult'] is None
    assert chosen(detector='atss', **pretrained)['lr_mult'] is None


def test_weights_without_decay_have_the_share_of_their_backbone():
    backbone = replace(PYRAMID, weights='a.pth', lr=1e-4, no_decay=('table',))
    profile = profile_with(backbone=backbone)
    text = config_text(profile, choose_recipe(profile), Path('/data'), [])
    assert 'table=dict(lr_mult=0.2, decay_mult=0.0), backbone=dict(lr_mult=0.2)' in text
    random = replace(profile, backbone=replace(profile.backbone, weights=None))
    text = config_text(random, choose_recipe(random), Path('/data'), [])
    assert 'custom_keys=dict(table=dict(decay_mult=0.0))' in text


@pytest.mark.parametrize('name', ['resnet18', 'resnet50', 'ptnt_ti'])
def test_batch_norm_learns_its_statistics_from_scratch(name: str):
    """Statistics stay fixed by default in mmdet's ResNet."""
    settings = find_backbone(name, None, 'mmdet').settings
    with DefaultScope.overwrite_default_scope('mmdet'):
        network = MODELS.build(settings)
    network.train()
    assert all(part.training for part in network.modules())


def test_norm_follows_batch():
    assert chosen()['norm'] == PYRAMID.norm
    assert chosen(counts=dict(train=10_000))['norm'] is None
    small = dict(memory=StepMemory(GIB, GIB), free=('the GPU', 4 * GIB))
    assert chosen(counts=dict(train=10_000), **small)['norm'] == PYRAMID.norm
    assert chosen(backbone=replace(PYRAMID, norm=None))['norm'] is None


def test_warm_up_ends():
    found = [
        chosen(counts=dict(train=n), asked_epochs=e)['warm-up']
        for n, e in ((400, 10), (60, 10), (2, 4), (2, 1))
    ]
    assert found == [None, 30, 2, 0]


def labels_with(rare: int, images: int = 200) -> tuple[frozenset[str], ...]:
    """Balls in all images, cups in a few."""
    return tuple(frozenset({'ball', 'cup'} if i < rare else {'ball'}) for i in range(images))


@pytest.mark.parametrize('task', ['detection', 'instance'])
@pytest.mark.parametrize(('rare', 'threshold'), [(0, None), (1, 0.25), (9, 0.25), (10, None)])
def test_images_of_a_rare_class_are_repeated(task: str, rare: int, threshold: float | None):
    assert chosen(task=task, labels=labels_with(rare))['balance'] == threshold


def test_repeated_images_make_longer_epochs():
    # Each of the four images is seen four times: the root of 0.25 / (4 / 200), rounded up.
    profile = profile_with(labels=labels_with(4))
    recipe = choose_recipe(profile)
    assert recipe['balance'].because == "'cup' is in 4 of 200 images, seen 4 times each"
    assert recipe['epochs'].value == round(chosen()['epochs'] * 200 / 212)
    text = config_text(profile, recipe, Path('/data'), [])
    assert "type='ClassBalancedDataset', oversample_thr=balance" in text
    assert len(text.splitlines()) <= 40


def test_many_rare_classes_are_not_repeated():
    labels = tuple(frozenset({'ball', str(i // 4)}) for i in range(200))
    assert chosen(labels=labels)['balance'] is None
    assert chosen(task='semantic', small=None, labels=labels_with(4))['balance'] is None


def test_other_rules():
    assert (chosen()['model'], chosen(task='instance')['model']) == ('gfl', 'mask_rcnn')
    assert (chosen()['width'], chosen(counts=dict(train=9000))['width']) == (64, 256)
    assert chosen(small=0.02, asked_size=640)['anchors'] is None
    assert chosen(small=0.02, asked_size=640, detector='retinanet')['anchors'] == 16
    assert chosen(small=0.01, asked_size=640, task='instance')['anchors'] == 8
    assert (chosen()['max_per_img'], chosen(most=300)['max_per_img']) == (None, 500)
    found = [chosen(counts=dict(train=n))['augmentation'] for n in (100, 400, 1000)]
    assert found == ['strong', 'medium', 'light']
    assert chosen(asked_epochs=10)['augmentation'] == 'light'
    assert chosen(task='classification', small=None)['augmentation'] == 'strong'


@pytest.mark.parametrize('task', ['detection', 'instance', 'semantic', 'classification'])
@pytest.mark.parametrize('backbone', [PYRAMID, RESNET, PLAIN], ids=lambda one: one.name)
def test_a_config_has_at_most_40_lines(task: str, backbone: MeasuredBackbone):
    profile = profile_with(task, backbone=backbone, small=0.01, most=300, size=(4000, 3000))
    memory = dict(memory=StepMemory(GIB, GIB), free=('the GPU', 4 * GIB))
    text = config_text(
        replace(profile, **memory),
        choose_recipe(replace(profile, **memory)),
        Path('/data'),
        ['a', 'b'],
    )
    ast.parse(text)
    assert "\nimages = '/data'\n" in text
    assert len(text.splitlines()) <= 40
    for figure in ('size', 'batch_size', 'epochs', 'lr'):
        assert re.search(rf'^{figure} = .*  # ', text, re.MULTILINE)


def test_the_docs_list_every_rule_in_its_order():
    page = (ROOT / 'docs' / 'data.md').read_text()
    _, table = page.split('| Setting | Rule | Reason |')
    assert re.findall(r'^\| `(.+?)` \|', table, re.MULTILINE) == list(RECIPE_RULES)


def test_names_from_strangers_stay_names(tmp_path: Path):
    """MMEngine fills in templates before it runs a config: they must not come from the labels."""
    classes = (
        "{{ $NO_SUCH:'+str(1/0)+' }}",
        '{{ fileDirname }}',
        "a', __import__('os').abort(), 'b",
        '{{ _base_.model }}',
        'a\nb',
    )
    profile = replace(PROFILE, classes=classes)
    data = Path("/data/{{ $HOME }}/it's\n1/0")
    recipe = choose_recipe(profile)
    copy_fragments(tmp_path, profile)
    text = config_text(profile, recipe, data, [f'Written for {data}'])
    (tmp_path / 'config.py').write_text(text)
    config = Config.fromfile(tmp_path / 'config.py')
    assert config.classes == classes
    assert config.images == str(data)
