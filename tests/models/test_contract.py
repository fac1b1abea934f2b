"""What every backbone of the family promises, whatever its options are.

A test per promise, for every row of ``BUILDS``. What only one network does is tested in its file.
"""

import copy
import inspect
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from micro import MICRO_ARCH
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from ptnt_mm.models import CPVT, TNT, LegacyTNT, PyramidTNT
from ptnt_mm.models.attention import Attention
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.models.blocks import Mlp
from ptnt_mm.weights.identity import identify

from . import golden

NESTED = dict(depth=2, outer_dim=16, inner_dim=8, outer_heads=4, inner_heads=2, words=16)
PLAIN = dict(depth=3, dim=16, heads=4)
SMALL = {PyramidTNT: (MICRO_ARCH, 4), TNT: (NESTED, 2), CPVT: (PLAIN, 3)}
"""A small arch and its number of stages or blocks, also of the classes that inherit from these."""


class Build(NamedTuple):
    """A network with options, small enough to be built hundreds of times."""

    cls: type[Backbone]
    options: dict

    def __str__(self) -> str:
        return f'{self.cls.__name__} {self.options or ""}'

    @property
    def arch(self) -> dict:
        """The small arch of the network."""
        return self._small[0]

    @property
    def all_frozen(self) -> int:
        """The largest value of ``frozen_stages``."""
        return self._small[1]

    @property
    def _small(self) -> tuple[dict, int]:
        return next(SMALL[cls] for cls in self.cls.__mro__ if cls in SMALL)

    def new(self, **more) -> Backbone:
        """The network with golden weights."""
        size = {} if issubclass(self.cls, PyramidTNT) else dict(pretrain_img_size=64)
        return golden.filled(self.cls(self.arch, **size | self.options | more))


SHARED = (
    {},
    dict(attention='eager'),
    dict(with_cp=True),
    dict(mlp_ratio=2.5),
    dict(position='sinusoidal'),
    dict(position='none'),
)
"""Options of all of them."""

BUILDS = [
    *(Build(cls, options) for cls in (PyramidTNT, TNT, CPVT) for options in SHARED),
    Build(LegacyTNT, {}),
    Build(PyramidTNT, dict(position='learned')),
    Build(PyramidTNT, dict(position='relative')),
    Build(PyramidTNT, dict(position='peg')),
    Build(PyramidTNT, dict(position=dict(type='peg', blocks=(-1,), kernel_size=5))),
    Build(PyramidTNT, dict(relative_position='flat')),
    Build(PyramidTNT, dict(relative_position='none')),
    Build(PyramidTNT, dict(with_se=True, out_norms=True)),
    Build(PyramidTNT, dict(norm_cfg=dict(type='GN', num_groups=1))),
    *(Build(PyramidTNT, dict(out_indices=indices)) for indices in ((0,), (1, 3), (-2, -1))),
    Build(TNT, dict(with_se=True, out_indices=(0, -1))),
    Build(TNT, dict(position='peg', word_position='sinusoidal')),
    Build(PyramidTNT, dict(stem='patch', sr_ratios=(1, 2, 1, 1))),
    Build(TNT, dict(stem='conv', inner_blocks=(0,), position='relative_2d')),
    Build(TNT, dict(inner_blocks=(1,), position='relative_shaw')),
    Build(CPVT, dict(position='relative_shaw', with_cls_token=False)),
    Build(CPVT, dict(position='relative_2d')),
    Build(CPVT, dict(position=dict(type='peg', kind='four_separable', blocks=(0, 1)))),
    Build(TNT, dict(word_position='none')),
    Build(CPVT, dict(position='learned', with_cls_token=False)),
    Build(CPVT, dict(position=dict(type='peg', blocks=(-1, 0, 2), padding_mode='replicate'))),
    Build(CPVT, dict(out_indices=(0, -1))),
]
DEFAULTS = [build for build in BUILDS if not build.options]
SIZE = (61, 93)
RANDOM = dict(drop_rate=0.3, attn_drop_rate=0.3, drop_path_rate=0.3)

every_build = pytest.mark.parametrize('build', BUILDS, ids=str)
defaults = pytest.mark.parametrize('build', DEFAULTS, ids=str)


def loss(maps: Sequence[Tensor]) -> Tensor:
    return sum(output.square().mean() for output in maps)


def gradients(model: nn.Module, image: Tensor) -> dict[str, Tensor]:
    torch.manual_seed(1)
    loss(model(image)).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@every_build
@settings(max_examples=4, derandomize=True, deadline=None, database=None)
@given(height=st.integers(16, 200), width=st.integers(16, 200))
def test_any_size_gives_the_declared_maps(build, height, width):
    model, image = build.new().eval(), golden.image(2, height, width)
    before = image.clone()
    with torch.inference_mode():
        maps = model(image)
    expected = [
        (2, channels, math.ceil(height / stride), math.ceil(width / stride))
        for channels, stride in zip(model.out_channels, model.out_strides, strict=True)
    ]
    assert [tuple(output.shape) for output in maps] == expected
    assert all(output.is_contiguous() and output.isfinite().all() for output in maps)
    assert torch.equal(image, before)


@defaults
@pytest.mark.parametrize('attention', ['eager', 'fused'])
@torch.inference_mode()
def test_extreme_sizes(build, attention):
    model, side = build.new(attention=attention).eval(), build.cls.patch
    for size in ((side, side), (side + 1, 2 * side - 1), (side, 2048), (2047, 33)):
        assert all(output.isfinite().all() for output in model(golden.image(1, *size)))


@every_build
def test_its_maps_are_described_as_timm_does(build):
    from timm.models._features import FeatureInfo

    model = build.new()
    info = model.feature_info
    assert info.channels() == list(model.out_channels)
    assert info.reduction() == list(model.out_strides)
    assert all(model.get_submodule(name) is not None for name in info.module_name())
    theirs = FeatureInfo(copy.deepcopy(list(info)), info.out_indices)
    for method in ('channels', 'reduction', 'module_name'):
        assert getattr(info, method)() == getattr(theirs, method)()


@every_build
def test_its_weights_are_recognised(build):
    """Also with only some of them, and without a change of the random state."""
    weights = build.new(out_indices=(-1,)).state_dict()
    name = build.cls.__name__
    before = torch.get_rng_state()
    assert identify(weights).kind == name
    assert identify(dict(list(weights.items())[: len(weights) * 3 // 4])).kind == name
    assert before.equal(torch.get_rng_state())
    assert {key.split('.')[0] for key in weights if not key.startswith('norm')} <= {
        *build.cls.roots
    }
    shown = build.cls.options_of(weights)
    assert shown.keys() <= inspect.signature(build.cls).parameters.keys()


@every_build
def test_every_parameter_gets_a_gradient(build):
    """A parameter without one stops DistributedDataParallel."""
    found = gradients(build.new(drop_path_rate=0.0).train(), golden.image(2, *SIZE))
    assert [name for name, grad in found.items() if grad is None or not grad.any()] == []


@every_build
@pytest.mark.parametrize('other', [dict(attention='eager'), dict(with_cp=True)], ids=str)
def test_forms_of_computing_give_the_same_numbers(build, other):
    image = golden.image(1, *SIZE).double()
    (outputs, grads), (others, other_grads) = (
        (model(image), gradients(model, image))
        for model in (
            build.new(drop_path_rate=0.0).double(),
            build.new(**other, drop_path_rate=0.0).double(),
        )
    )
    torch.testing.assert_close(others, outputs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(other_grads, grads, rtol=1e-7, atol=1e-9)


@defaults
@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_recomputing_draws_the_same_random_choices(build, attention):
    image = golden.image(2, *SIZE)
    first, again = (
        gradients(build.new(attention=attention, with_cp=cp, frozen_stages=1, **RANDOM), image)
        for cp in (False, True)
    )
    torch.testing.assert_close(again, first)


@every_build
def test_evaluation_is_not_random_and_training_is(build):
    model, image = build.new(**RANDOM).eval(), golden.image(2, *SIZE)
    torch.testing.assert_close(model(image), model(image), rtol=0, atol=0)
    assert not torch.equal(model.train()(image)[-1], model(image)[-1])


@every_build
def test_copies_compute_the_same(build):
    model, image = build.new().eval(), golden.image(1, 40, 72)
    expected = model(image)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(twin(image), expected, rtol=0, atol=0)


@defaults
def test_the_meta_device_builds_and_runs_it(build):
    """Nothing in the constructor reads a value."""
    with torch.device('meta'):
        model = build.cls(build.arch)
        maps = model(torch.zeros(1, 3, *SIZE))
    assert all(output.is_meta for output in maps)


@every_build
def test_lower_precision(build):
    model, image = build.new(drop_path_rate=0.0), golden.image(2, *SIZE)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        maps = model(image)
    assert {output.dtype for output in maps} == {torch.bfloat16}
    loss(output.float() for output in maps).backward()
    assert {parameter.grad.dtype for parameter in model.parameters()} == {torch.float32}
    with torch.inference_mode():
        exact = model.eval()(image)
        rough = model.bfloat16()(image.bfloat16())
    for output, half in zip(exact, rough, strict=True):
        assert half.dtype == torch.bfloat16
        assert (half - output).square().mean().sqrt() < 0.2 * output.std()


@defaults
def test_gradients_by_torch_func(build):
    model, image = build.new().double().eval(), golden.image(2, *SIZE).double()
    parameters = dict(model.named_parameters())

    def of(values: dict[str, Tensor]) -> Tensor:
        return loss(torch.func.functional_call(model, values, (image,)))

    expected = torch.autograd.grad(of(parameters), list(parameters.values()))
    found = torch.func.grad(of)(parameters)
    torch.testing.assert_close(list(found.values()), list(expected))


@defaults
def test_gradients_by_torch_func_with_recomputation(build):
    """Torch.func supports none, so the blocks are computed once."""
    found = [gradients_by_torch_func(build.new(with_cp=cp)) for cp in (True, False)]
    torch.testing.assert_close(*found)


def gradients_by_torch_func(model: Backbone) -> dict[str, Tensor]:
    model, image = model.eval(), golden.image(2, *SIZE)
    parameters = dict(model.named_parameters())
    return torch.func.grad(lambda p: loss(torch.func.functional_call(model, p, (image,))))(
        parameters
    )


@defaults
@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_gradients_of_each_image_by_vmap(build, attention):
    model, images = build.new(attention=attention).double().eval(), golden.image(2, *SIZE).double()
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def of(values: dict[str, Tensor], image: Tensor) -> Tensor:
        return loss(torch.func.functional_call(model, values, (image[None],)))

    by_image = torch.func.grad(of)
    found = torch.func.vmap(by_image, in_dims=(None, 0))(parameters, images)
    expected = [by_image(parameters, image) for image in images]
    for name, both in found.items():
        torch.testing.assert_close(both, torch.stack([one[name] for one in expected]))


@defaults
def test_a_graph_of_symbolic_sizes_takes_other_images(build):
    """As torch.fx traces it; sizes of 1 would become constants. Each stage takes seconds."""
    model = build.new(out_indices=(0,)).eval()
    with torch.no_grad():
        graph = make_fx(model, tracing_mode='symbolic', _allow_non_fake_inputs=True)(
            golden.image(2, 160, 224)
        )
        other = golden.image(3, 203, 269)
        torch.testing.assert_close(graph(other), model(other))


@defaults
def test_the_published_form_has_second_and_forward_derivatives(build):
    """As a gradient penalty needs, and a Jacobian times a vector."""
    model = build.new(attention='eager', drop_path_rate=0.0).double().eval()
    image = golden.image(1, *SIZE).double().requires_grad_()
    direction = torch.linspace(-1, 1, image.numel(), dtype=image.dtype).view_as(image)

    def slope(at: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(loss(model(at)), at, create_graph=True)
        return (gradient * direction).sum()

    expected = slope(image)
    _, found = torch.func.jvp(lambda x: loss(model(x)), (image.detach(),), (direction,))
    torch.testing.assert_close(found, expected.detach())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(image.detach(), direction)
        tangent = forward_ad.unpack_dual(loss(model(dual))).tangent
    torch.testing.assert_close(tangent, expected.detach())
    (second,) = torch.autograd.grad(expected, image)
    step = 1e-5 * direction
    difference = slope((image + step).detach().requires_grad_()) - slope(
        (image - step).detach().requires_grad_()
    )
    torch.testing.assert_close((second * 2 * step).sum(), difference.detach(), rtol=1e-4, atol=0)


@every_build
@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_no_image_gives_no_map(build, attention):
    model = build.new(**build.options | dict(attention=attention)).train()
    maps = model(torch.zeros(0, 3, *SIZE))
    loss(output.sum() for output in maps).backward()
    assert [tuple(output.shape[:2]) for output in maps] == [(0, c) for c in model.out_channels]


class Wrapped(nn.Module):
    """A layer in another one, which has none of its attributes."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layer(tokens)


@defaults
@pytest.mark.parametrize('learns', [True, False])
def test_parts_of_a_block_are_called_once_and_can_be_wrapped(build, learns, request):
    """Also where a CPU computes them in slices."""
    model, image = build.new().eval(), golden.image(2, *SIZE)
    expected = model(image)
    request.getfixturevalue('small_slices')
    calls, parts = [], [m for m in model.modules() if isinstance(m, (Mlp, Attention))]
    for part in parts:
        part.register_forward_hook(lambda part, given, output: calls.append(part))
        if isinstance(part, Mlp):
            part.fc1 = Wrapped(part.fc1)
    with torch.set_grad_enabled(learns):
        torch.testing.assert_close(model(image), expected)
    assert Counter(calls) == Counter(parts)


@defaults
@torch.inference_mode()
def test_images_that_are_channels_last_in_memory(build):
    model, image = build.new().eval(), golden.image(2, *SIZE)
    expected = model(image)
    last = dict(memory_format=torch.channels_last)
    torch.testing.assert_close(model.to(**last)(image.to(**last)), expected, rtol=1e-4, atol=1e-4)


@every_build
@torch.inference_mode()
def test_the_first_output_alone_needs_only_its_part(build):
    whole, image = build.new().eval(), golden.image(1, *SIZE)
    part = build.new(out_indices=(whole.out_indices[0],)).eval()
    assert not part.load_state_dict(whole.state_dict(), strict=False).missing_keys
    torch.testing.assert_close(part(image)[0], whole(image)[0], rtol=0, atol=0)


@every_build
def test_depths_of_parameters_rise_with_the_blocks(build):
    model = build.new()
    depths = {
        name: model.get_layer_depth(f'backbone.{name}', 'backbone.')
        for name, _ in model.named_parameters()
    }
    (number,) = {number for _, number in depths.values()}
    assert {depths[name][0] for name in depths if name.startswith('patch_embed.')} == {0}
    blocks = [depth for name, (depth, _) in depths.items() if 'blocks.' in name]
    assert blocks == sorted(blocks) and set(blocks) == set(range(1, number - 1))
    norms = {depth for name, (depth, _) in depths.items() if name.startswith('norm')}
    assert norms <= {number - 1}


@defaults
@pytest.mark.parametrize(
    'image',
    [
        torch.zeros(1, 4, 64, 64),
        torch.zeros(3, 64, 64),
        torch.zeros(1, 3, 64, 64, dtype=torch.uint8),
        torch.zeros(1, 3, 7, 64),
    ],
    ids=['channels', 'axes', 'integers', 'low'],
)
def test_an_image_that_it_cannot_take_is_named(build, image):
    model = build.new()
    value = str(image.dtype) if not image.is_floating_point() else str(tuple(image.shape))
    for forward in (model, model.forward_tokens):
        with pytest.raises(ValueError) as error:
            forward(image)
        assert value in str(error.value) or '7x64' in str(error.value)
        assert type(model).__name__ in str(error.value)


STEM = (
    'patch_embed.', 'outer_pos', 'inner_pos', 'relative_pos', 'cls_token', 'proj', 'peg.',
    'pos_drop',
)  # fmt: skip


def frozen_names(model: Backbone, number: int) -> tuple[str, ...]:
    """How the names of frozen weights begin: the stem for 0, and the first stages or blocks."""
    if number < 0:
        return ()
    parts = 'stages' if isinstance(model, PyramidTNT) else 'blocks'
    merges = [f'{kind}_merges.{i}.' for kind in ('word', 'sentence') for i in range(number - 1)]
    return (*STEM, *(f'{parts}.{i}.' for i in range(number)), *merges)


@pytest.mark.parametrize(
    ('build', 'number'),
    [
        *((build, 1) for build in BUILDS),
        *((build, n) for build in DEFAULTS for n in range(-1, build.all_frozen + 1)),
    ],
    ids=str,
)
def test_exactly_the_frozen_parts_learn_nothing(build, number):
    model = build.new(frozen_stages=number, drop_path_rate=0.0).train()
    names = frozen_names(model, number)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad != name.startswith(names), name
    for name, module in model.named_modules():
        if (
            name
            and not isinstance(module, nn.ModuleList)
            and next(module.parameters(), None) is not None
        ):
            assert module.training != f'{name}.'.startswith(names), name
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if trained:
        loss(model(golden.image(2, *SIZE))).backward()
        torch.optim.SGD(trained, lr=0.1).step()
    for name, value in model.state_dict().items():
        if names and name.startswith(names):
            assert torch.equal(value, before[name]), name


@defaults
def test_what_is_frozen_completely_is_not_random(build):
    number = build.all_frozen
    model, image = build.new(frozen_stages=number, **RANDOM).train(), golden.image(2, *SIZE)
    torch.testing.assert_close(model(image), model(image), rtol=0, atol=0)
