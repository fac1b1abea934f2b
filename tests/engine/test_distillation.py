"""Parts of `FeatureDistiller`: pairs of maps, mosaics, losses, a teacher that stays as it is."""

import random

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from torch import nn

from ptnt_mm.hooks import CompileHook
from ptnt_mm.registry import MODELS

GREY = dict(mean=[127.5] * 3, std=[127.5] * 3)


@MODELS.register_module()
class Halvings(nn.Module):
    """A convolution of stride 2 for each map."""

    def __init__(self, widths: list[int], norm: bool = True):
        super().__init__()
        inputs = [3, *widths]
        self.steps = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
            for a, b in zip(inputs, widths, strict=False)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        maps = []
        for step in self.steps:
            x = step(x)
            maps.append(x)
        return tuple(maps)


@MODELS.register_module()
class Maps(nn.Module):
    """Maps of given sides, whatever the image, which it remembers."""

    def __init__(self, sides: list[int]):
        super().__init__()
        self.sides = sides

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.image = x
        return tuple(torch.zeros(len(x), 2, side, side) for side in self.sides)


def with_teacher(student: dict, teacher: dict, **options) -> nn.Module:
    torch.manual_seed(0)
    settings = dict(
        type='FeatureDistiller',
        backbone=student,
        teacher=dict(type='BackboneTeacher', backbone=teacher, **GREY),
        data_preprocessor=dict(type='ImgDataPreprocessor', **GREY),
        size=64,
    )
    return MODELS.build(settings | options)


def distiller(student: list[int], teacher: list[int], **options) -> nn.Module:
    networks = (dict(type='Halvings', widths=widths) for widths in (student, teacher))
    return with_teacher(*networks, **options)


@pytest.mark.parametrize(
    ('student', 'teacher', 'expected'),
    [
        ([16, 8, 4, 2], [64, 32, 16, 8, 4], [(0, 2), (1, 3), (2, 4), (3, 4)]),
        ([32, 16], [16, 8], [(1, 0)]),
        ([8, 8, 8], [16, 8], [(2, 1)]),
        ([16, 8], [8, 8], [(1, 1)]),
    ],
)
def test_maps_of_the_same_stride_are_compared(student: list, teacher: list, expected: list):
    networks = (dict(type='Maps', sides=sides) for sides in (student, teacher))
    assert with_teacher(*networks).pairs == expected


def test_a_mosaic_has_four_images_at_their_size():
    images = torch.arange(9.0).view(9, 1, 1, 1).expand(9, 3, 2, 2)
    maps = dict(type='Maps', sides=[2])
    model = with_teacher(maps, maps, mosaic=1.0)
    model(images)
    joined = model.backbone.image
    assert joined.shape == (2, 3, 4, 4)
    assert joined[1, 0].tolist() == [[4, 4, 5, 5]] * 2 + [[6, 6, 7, 7]] * 2


def test_the_loss_of_maps_ignores_the_scale_of_the_teachers_channels():
    torch.manual_seed(0)
    taught = torch.randn(8, 3, 5, 5)
    scaled = taught * torch.tensor([1.0, 100.0, 0.1]).view(3, 1, 1) + 7
    student = torch.randn(8, 3, 5, 5)
    loss = MODELS.build(dict(type='MapMSE'))
    assert loss(student, taught) == pytest.approx(float(loss(student, scaled)), rel=1e-3)
    exact = nn.BatchNorm2d(3, affine=False)(taught)
    assert float(loss(exact, taught)) == pytest.approx(0, abs=1e-6)


def test_training_lowers_the_losses_and_leaves_the_teacher_as_it_is():
    model = distiller([4, 8, 8], [6, 6, 6], mosaic=0.5)
    before = {key: value.clone() for key, value in model.teacher.state_dict().items()}
    wrapper = build_optim_wrapper(model, dict(optimizer=dict(type='AdamW', lr=1e-2)))
    images = [torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8) for _ in range(8)]
    random.seed(0)
    losses = [
        float(model.train().train_step(dict(inputs=images), wrapper)['loss']) for _ in range(12)
    ]
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])
    after = model.teacher.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not model.teacher.training and model.backbone.training
    maps = model.eval()(torch.zeros(2, 3, 64, 64), mode='tensor')
    assert [m.shape[1] for m in maps] == [4, 8, 8]


def test_a_teacher_without_a_common_stride_is_refused():
    with pytest.raises(ValueError, match=r'no map of a stride of the student: \[2\] and \[1\]'):
        with_teacher(*(dict(type='Maps', sides=[side]) for side in (64, 32)))


def test_bfloat16_on_a_cpu():
    model = distiller([4, 8], [6, 6])
    settings = dict(type='Bfloat16OptimWrapper', optimizer=dict(type='AdamW', lr=1e-2))
    wrapper = build_optim_wrapper(model, settings)
    with wrapper.optim_context(model):
        assert model.backbone(torch.zeros(2, 3, 64, 64))[0].dtype == torch.bfloat16
    images = [torch.zeros(3, 64, 64, dtype=torch.uint8)] * 2
    losses = model.train_step(dict(inputs=images), wrapper)
    assert all(torch.isfinite(value) for value in losses.values())


def test_parts_are_compiled_under_their_names(monkeypatch: pytest.MonkeyPatch):
    model = distiller([4, 8], [6, 6])
    names, compiled = list(model.state_dict()), []
    monkeypatch.setattr(nn.Module, 'compile', lambda part, mode, **_: compiled.append((part, mode)))

    class Runner:
        pass

    runner = Runner()
    runner.model = model
    mode = 'reduce-overhead'
    CompileHook(['backbone', 'teacher'], mode=mode).before_train(runner)
    assert compiled == [(model.backbone, mode), (model.teacher, mode)]
    assert list(model.state_dict()) == names
