"""Backbone and neck as CUDA graphs, which a stand-in captures: all but the capture itself."""

import copy
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from micro import MICRO_ARCH
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import EMAHook, Hook
from mmengine.model import BaseModel, MMFullyShardedDataParallel
from mmengine.registry import METRICS, MODELS
from mmengine.runner import Runner
from torch import Tensor, nn
from toy import evaluated, quick, same, toy_iterations

from benchmark.graph_stand_in import GraphStandIn
from ptnt_mm import api
from ptnt_mm.config.build import unwrapped
from ptnt_mm.config.view import ConfigView
from ptnt_mm.engine import modes
from ptnt_mm.engine.hooks import CompileHook, CudaGraphHook
from ptnt_mm.engine.hooks import cuda_graphs as module
from ptnt_mm.engine.hooks.cuda_graphs import GraphedPart, graph_parts
from ptnt_mm.models import PyramidTNT, TransposedConvNeck
from ptnt_mm.utils.errors import UserError


@MODELS.register_module()
class GraphedToy(BaseModel):
    """Everything that graphs could spoil: dropped paths, BatchNorm, maps that go on to a neck."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.backbone = PyramidTNT(MICRO_ARCH, drop_path_rate=0.3, drop_rate=0.1)
        self.neck = TransposedConvNeck(self.backbone.out_channels)

    def forward(self, inputs: list[Tensor], data_samples: list, mode: str = 'tensor'):
        # The toy's rows are four numbers: three make an image, and the first chooses its size.
        rows = torch.stack(list(inputs))
        width = 64 if rows[0, 0] < 0.5 else 96
        images = rows[:, 1:, None, None] * torch.linspace(-1, 1, 64 * width).view(64, width)
        levels = self.neck(self.backbone(images))
        if mode == 'predict':
            return [level.square().mean() for level in levels]
        return dict(loss=sum((level - 1).square().mean() for level in levels))


@METRICS.register_module()
class LevelSize(BaseMetric):
    """The mean square of all maps of an evaluation, in every one so far."""

    found: list[float] = []

    def process(self, data_batch: dict, data_samples: list) -> None:
        self.results += [sample.item() for sample in data_samples]

    def compute_metrics(self, results: list) -> dict[str, float]:
        self.found.append(sum(results))
        return dict(size=sum(results))


class Losses(Hook):
    """Those of a run."""

    def __init__(self):
        self.values: list[float] = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
        self.values.append(outputs['loss'].item())


def run(folder: Path, capture: GraphStandIn | None, **settings) -> tuple[dict, list[float]]:
    """The weights and the losses of a run, with graphs if there is a capture."""
    config = quick(toy_iterations(folder, 8, model=dict(type='GraphedToy'), **settings))
    config.optim_wrapper.optimizer = dict(type='SGD', lr=0.05, momentum=0.9)
    config.experiment_name = str(folder)  # MMEngine keeps what has this name
    runner, losses = Runner.from_cfg(config), Losses()
    runner.register_hook(losses)
    if capture is not None:
        runner.register_hook(CudaGraphHook(after=2, capture=capture))
    runner.train()
    assert 'forward' not in vars(unwrapped(runner.model).backbone), 'restored'
    weights = {name: value.clone() for name, value in runner.model.state_dict().items()}
    averages = [hook.ema_model.state_dict() for hook in runner.hooks if isinstance(hook, EMAHook)]
    return weights | {
        f'ema.{n}': v.clone() for one in averages for n, v in one.items()
    }, losses.values


SETTINGS = {
    'plain': {},
    'accumulation': dict(optim_wrapper=dict(accumulative_counts=3)),
    'clipping': dict(optim_wrapper=dict(clip_grad=dict(max_norm=0.1))),
    'averages': dict(custom_hooks=[dict(type='RepeatableHook'), dict(type='EMAHook')]),
    'bfloat16': dict(optim_wrapper=dict(type='Bfloat16OptimWrapper')),
}


@pytest.mark.parametrize('settings', SETTINGS.values(), ids=list(SETTINGS))
def test_a_run_with_graphs_is_the_same(settings: dict, tmp_path: Path):
    capture = GraphStandIn()
    expected, losses = run(tmp_path / 'plain', None, **copy.deepcopy(settings))
    found, with_graphs = run(tmp_path / 'graphs', capture, **copy.deepcopy(settings))
    assert with_graphs == losses and len(set(losses)) == 8
    assert found.keys() == expected.keys() and same(found, expected)
    # Each of two sizes has a graph of the backbone and one of the neck.
    assert len(capture.sizes) == len(set(capture.sizes)) == 4


def test_evaluation_sees_averaged_weights_in_graphs(tmp_path: Path, monkeypatch):
    """The hook swaps them with those in training, before and after each evaluation."""
    settings = evaluated(toy_iterations(tmp_path))
    settings = {name: settings[name] for name in ('val_cfg', 'val_dataloader')}
    settings |= dict(val_evaluator=dict(type='LevelSize'), **SETTINGS['averages'])
    settings['train_cfg'] = dict(type='IterBasedTrainLoop', max_iters=8, val_interval=2)
    capture, weights, sizes = GraphStandIn(), [], []
    for name, used in (('plain', None), ('graphs', capture)):
        monkeypatch.setattr(LevelSize, 'found', [])
        weights.append(run(tmp_path / name, used, **copy.deepcopy(settings))[0])
        sizes.append(LevelSize.found)
    assert sizes[0] == sizes[1] and len(set(sizes[0])) == 4
    assert same(*weights) and len(capture.sizes) > 4, 'evaluation has graphs of its own'


def test_a_resumed_run_captures_again(tmp_path: Path):
    checkpoint = dict(type='WholeCheckpointHook', by_epoch=False, interval=4, max_keep_ckpts=9)
    kept = dict(default_hooks=dict(checkpoint=checkpoint))
    expected, losses = run(tmp_path / 'whole', None, **kept)
    capture, resume = GraphStandIn(), str(tmp_path / 'whole/iter_4.pth')
    found, with_graphs = run(tmp_path / 'resumed', capture, resume=True, load_from=resume)
    assert with_graphs == losses[4:] and same(found, expected) and capture.sizes


class Scale(nn.Module):
    """The smallest part: a number, and what happened to it."""

    def __init__(self):
        super().__init__()
        self.number = nn.Parameter(torch.ones(()))
        self.register_buffer('calls', torch.zeros(()))

    def forward(self, image: Tensor, by: float = 1.0) -> tuple[Tensor]:
        self.calls += self.training
        return (image * self.number * by,)


@pytest.fixture
def capture() -> GraphStandIn:
    return GraphStandIn()


@pytest.fixture
def part(capture: GraphStandIn) -> nn.Module:
    """One whose sizes are captured when they come for the second time."""
    part = Scale()
    part.graphed = GraphedPart(part, after=2, most=2, capture=capture)
    part.graphed.install()
    return part


def step(part: nn.Module, side: int) -> Tensor:
    part.graphed.start_step()
    return part(torch.ones(side))[0]


def test_a_size_is_captured_when_it_recurs(part, capture):
    for side in (1, 2, 1, 1, 2):
        assert step(part, side).shape == (side,)
    assert capture.sizes == [(1,), (2,)]
    assert part.calls == 5, 'warming up leaves no trace'


def test_the_oldest_graph_makes_room_once_it_is_idle(part, capture, monkeypatch):
    for side in (1, 1, 2, 2, 3, 3, 3):
        step(part, side)
    assert capture.sizes == [(1,), (2,)], 'nothing is idle yet'
    monkeypatch.setattr(module, 'IDLE', 3)
    for side in (2, 3, 3, 1):
        step(part, side)
    assert capture.sizes == [(1,), (2,), (3,)]
    step(part, 1)
    assert capture.sizes == [(1,), (2,), (3,), (1,)], '1 has to recur again'


def test_a_second_call_in_a_step_runs_as_before(part):
    for _ in range(3):
        first = step(part, 1)
        second = part(torch.full((1,), 3.0))[0]
        assert (first, second) == (1, 3)
        part.number.grad = None
        (first * second).sum().backward()
        assert part.number.grad == 6


def test_results_of_evaluation_stay(part, capture):
    part.eval()
    with torch.no_grad():
        found = [part(torch.full((1,), number))[0] for number in (1.0, 2.0, 3.0, 4.0)]
    assert found == [1, 2, 3, 4] and capture.sizes == [(1,)]


def test_evaluation_within_a_step_leaves_its_graph_alone(part, capture):
    def evaluate() -> None:
        with torch.no_grad():
            [part.eval()(torch.ones(1)) for _ in range(3)]
        part.train()

    [step(part, 1) for _ in range(2)]
    evaluate()
    assert len(capture.sizes) == 1
    part.graphed.end_step()
    evaluate()
    assert len(capture.sizes) == 2


def test_memory_limits_graphs(monkeypatch):
    monkeypatch.setattr(module, 'IDLE', 4)
    capture = GraphStandIn(share=0.2)
    part = Scale().eval()
    GraphedPart(part, after=1, memory=0.3, capture=capture).install()
    with torch.no_grad():
        for side in (1, 2, 3, 2, 2, 3):
            part(torch.ones(side))
    assert capture.sizes == [(1,), (2,), (3,)] and capture.held == pytest.approx(0.6)
    assert list(key[2][0][0] for key in part.forward.graphs) == [(2,), (3,)], 'one made room'


def test_memory_is_measured_without_what_torch_keeps(monkeypatch):
    reserved = iter([10, 30])
    fakes = dict(
        is_available=lambda: True,
        graph_pool_handle=lambda: 'pool',
        device=lambda device: nullcontext(),
        empty_cache=lambda: None,
        memory_reserved=lambda: next(reserved),
        mem_get_info=lambda: (50, 100),
        make_graphed_callables=lambda function, samples, **options: (function, options),
    )
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    capture = module.TorchCapture()
    function, options = capture(len, (torch.ones(1),))
    assert function is len and options['pool'] == 'pool'
    assert capture.held == pytest.approx(0.2)


def test_evaluation_with_gradients_and_unusual_arguments_run_as_before(part, capture):
    part.eval()
    for _ in range(3):
        step(part, 1)
    part.train()
    with torch.no_grad():
        [step(part, 1) for _ in range(3)]
    part.graphed.start_step()
    assert part(torch.ones(1), by=2.0)[0] == part(torch.ones(1), 2.0)[0] == 2
    assert not capture.sizes


def test_a_copy_has_no_graphs_and_other_weights(part, capture):
    [step(part, 1) for _ in range(2)]
    other = copy.deepcopy(part)
    with torch.no_grad():
        other.number.fill_(5)
    assert other(torch.ones(1))[0] == 5 and step(part, 1) == 1 and capture.sizes == [(1,)]
    assert part.state_dict().keys() == Scale().state_dict().keys()


@pytest.mark.parametrize('replaced', [True, False])
def test_weights_that_move_and_freeze_are_followed(part, capture, replaced):
    [step(part, 1) for _ in range(2)]
    before = part.number.data
    if replaced:
        part.number = nn.Parameter(torch.tensor(4.0))
    else:
        part.number.data = torch.tensor(4.0)
    assert step(part, 1) == step(part, 1) == 4
    assert before == 1, 'someone may put it back'
    assert len(capture.sizes) == 2
    part.number.requires_grad_(False)
    assert not step(part, 1).requires_grad
    assert len(capture.sizes) == 2


def test_what_cannot_be_captured_is_named():
    def fails(function, samples):
        raise RuntimeError('operation not permitted when stream is capturing\nmore')

    part = Scale()
    part.graphed = GraphedPart(part, 1, capture=fails)
    part.graphed.install()
    with pytest.raises(UserError, match=r'Scale cannot run .*capturing\): omit `cuda_graphs`'):
        step(part, 1)


def test_an_idle_graph_makes_room_behind_one_of_training(part, capture, monkeypatch):
    monkeypatch.setattr(module, 'IDLE', 3)
    [step(part, 1) for _ in range(2)]
    part.graphed.end_step()
    part.eval()
    with torch.no_grad():
        for side in (2, 2, 3, 3, 3, 3):
            part(torch.ones(side))
    assert capture.sizes == [(1,), (2,), (3,)]


def test_recomputed_and_compiled_parts_are_refused(capture):
    recomputed = GraphedToy()
    recomputed.backbone = PyramidTNT(MICRO_ARCH, with_cp=True)
    assert graph_parts(recomputed, capture=capture), 'which evaluation does not mind'
    recomputed.backbone = PyramidTNT(MICRO_ARCH, with_cp=True)
    del recomputed.neck.forward
    with pytest.raises(UserError, match='with_cp=False'):
        CudaGraphHook(capture=capture).before_train(FakeRunner(recomputed))
    part = Scale()
    part.compile()
    with pytest.raises(UserError, match='Scale is compiled'):
        GraphedPart(part, capture=capture)


def test_sizes_without_memory_are_not_tried_again_and_again(monkeypatch):
    tried = []

    class Fails(GraphStandIn):
        def __call__(self, function, samples):
            tried.append(samples[0].shape)
            raise torch.OutOfMemoryError

    monkeypatch.setattr(module, 'IDLE', 6)
    part = Scale()
    part.graphed = GraphedPart(part, 1, most=2, capture=Fails())
    part.graphed.install()
    for _ in range(10):
        for side in (1, 2, 3):
            step(part, side)
    assert len(tried) == 2


def test_another_compiler_is_refused(tmp_path: Path):
    config = quick(toy_iterations(tmp_path, 1, model=dict(type='GraphedToy')))
    config.experiment_name = 'two_compilers'
    runner = Runner.from_cfg(config)
    runner.register_hook(CompileHook())
    runner.register_hook(CudaGraphHook(capture=GraphStandIn()))
    with pytest.raises(UserError, match='CompileHook or CUDA graphs, not both'):
        runner.train()


def test_a_part_that_was_wrapped_is_refused(capture):
    part = Scale()
    part.forward = part.forward
    with pytest.raises(UserError, match='the forward pass of a Scale was replaced'):
        GraphedPart(part, capture=capture)


class FakeRunner:
    def __init__(self, model: nn.Module):
        self.model, self.hooks = model, []


def test_models_without_the_part_are_refused(capture):
    hook = CudaGraphHook(['head'], capture=capture)
    with pytest.raises(UserError, match="GraphedToy has no 'head': .*backbone, neck"):
        hook.before_train(FakeRunner(GraphedToy()))


def test_a_model_that_is_divided_among_processes_is_refused(capture):
    wrapped = MMFullyShardedDataParallel.__new__(MMFullyShardedDataParallel)
    nn.Module.__init__(wrapped)
    with pytest.raises(UserError, match='MMFullyShardedDataParallel divides'):
        CudaGraphHook(capture=capture).before_train(FakeRunner(wrapped))


def test_synchronised_batch_norm_is_refused(capture):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(GraphedToy())
    with pytest.raises(UserError, match='PyramidTNT has SyncBatchNorm'):
        CudaGraphHook(capture=capture).before_train(FakeRunner(model))


@pytest.mark.skipif(torch.cuda.is_available(), reason='needs a machine without a GPU')
def test_without_a_gpu_nothing_is_lost(tmp_path: Path):
    needed = ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper')
    with pytest.raises(UserError, match='`cuda_graphs=True` needs a CUDA device'):
        api.train(Config({name: {} for name in needed}), tmp_path / 'run', cuda_graphs=True)
    assert not (tmp_path / 'run').exists()
    with pytest.raises(UserError, match='CudaGraphHook needs a CUDA device'):
        CudaGraphHook().before_train(FakeRunner(GraphedToy()))
    needed = ('model', 'test_dataloader', 'test_cfg', 'test_evaluator')
    config = Config({name: {} for name in needed})
    with pytest.raises(UserError, match='`cuda_graphs=True` needs a CUDA device'):
        api.test(config, 'absent.pth', tmp_path / 'run', cuda_graphs=True)
    with pytest.raises(UserError, match="needs a CUDA device, not 'cpu'"):
        api.load_predictor(config, 'absent.pth', 'cpu', cuda_graphs=True)
    with pytest.raises(UserError, match='a.onnx runs without torch'):
        api.infer(None, 'a.onnx', 'photos', cuda_graphs=True)
    assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
    ('transform', 'divisor', 'expected'),
    [
        (dict(type='Resize', scale=(1333, 800), keep_ratio=True), 32, 160),
        (dict(type='mmdet.Resize', scale=(1333, 800), keep_ratio=True), 64, 64),
        (dict(type='Resize', scale=(1000, 600), keep_ratio=True), 32, 32),
        (dict(type='Resize', scale=(800, 800)), 32, 32),
    ],
)
def test_batches_are_padded_to_fewer_sizes(transform, divisor, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    loader = dict(dataset=dict(type='CocoDataset', pipeline=[transform]))
    model = dict(data_preprocessor=dict(type='DetDataPreprocessor', pad_size_divisor=divisor))
    config = Config(dict(model=model, train_dataloader=loader, optim_wrapper={}))
    config.optim_wrapper = dict(type='OptimWrapper')
    modes.use_modes(ConfigView(config), cuda_graphs=True)
    assert config.model.data_preprocessor.pad_size_divisor == expected
    assert [hook['type'] for hook in config.custom_hooks] == ['CudaGraphHook']
