"""Export from a config and a checkpoint, the comparison, and predictions without torch."""

import json
import logging
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from inference.samples import CLASSES, save
from mmengine.config import Config
from PIL import Image
from repository import ROOT
from torchvision.ops import nms

import ptnt_mm
from ptnt_mm.api import export
from ptnt_mm.deploy import Deployed
from ptnt_mm.deploy.export_info import ExportInfo, read_export_info
from ptnt_mm.deploy.pixels import prepared
from ptnt_mm.deploy.resizing import Resizing
from ptnt_mm.deploy.runtimes import load_runtime
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.cli.summaries import after_new
from ptnt_mm.workbench.config.read import apply_options
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.export.comparison import compare
from ptnt_mm.workbench.export.evaluation import remark_on_size
from ptnt_mm.workbench.export.formats import (
    OLDEST_TORCH,
    drop_assumptions,
    take_graph,
    to_onnx,
    write_program,
)
from ptnt_mm.workbench.export.supported_models import build_network, load_end_to_end

from .models import decided_model, narrow_config, quantised_operators
from .test_end_to_end import photograph

pytestmark = pytest.mark.skipif(
    torch.__version__ < OLDEST_TORCH, reason='torch is too old to export'
)

NAME = 'demo_mask_rcnn_ptnt_ti'

ON_LINUX = pytest.mark.skipif(sys.platform != 'linux', reason='quantisation needs Linux')

COMMAND = ('x.py', 'x.pth', '--size', '192', '256')


@pytest.fixture(scope='module')
def config(micro_arch: dict) -> Config:
    """Of two stages and three levels: an export takes as long as they are many."""
    shallow = dict(micro_arch, depths=(1,) * 4, inner_depths=(1,) * 4)
    config = narrow_config(NAME, shallow)
    model, strides = config.model, [4, 8, 16]
    model.backbone.out_indices = (0, 1)
    finer, pyramid = model.neck
    finer.in_channels = list(shallow['outer_dims'][:2])
    pyramid.update(in_channels=[finer.in_channels[0], *finer.in_channels], num_outs=len(strides))
    model.rpn_head.anchor_generator.strides = strides
    for extractor in (model.roi_head.bbox_roi_extractor, model.roi_head.mask_roi_extractor):
        extractor.featmap_strides = strides
    return config


@pytest.fixture(scope='module')
def folder(config: Config, common: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint, photographs, and the file that was exported of it.

    The first of the parallel processes makes it, each takes a copy.
    """
    shared = common / 'exported'
    with FileLock(shared.with_suffix('.lock')):
        if not (shared / 'x.onnx').exists():
            make_export(config, shared)
    return Path(shutil.copytree(shared, tmp_path_factory.mktemp('export') / 'copy'))


def make_export(config: Config, folder: Path) -> None:
    (folder / 'photos').mkdir(parents=True)
    config.dump(folder / 'x.py')
    save(decided_model(config), config, dict(classes=CLASSES), folder / 'x.pth')
    for number, size in enumerate([(192, 256), (90, 120)]):
        Image.fromarray(photograph(*size)).save(folder / 'photos' / f'{number}.png')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run('export', [*COMMAND, '--out', 'x.onnx']) == 0


def test_the_file_contains_facts_about_itself(folder: Path):
    about = read_export_info(folder / 'x.onnx')
    assert about.task == 'detection' and tuple(about.classes) == CLASSES
    assert about.size == [192, 256] and about.scale == [256, 192]
    assert set(about.thresholds) == {'score', 'overlap', 'boxes', 'mask'}
    assert not list(folder.glob('.*'))


def test_only_standard_operators_are_used(folder: Path):
    import onnx

    model = onnx.load(folder / 'x.onnx')
    onnx.checker.check_model(model)
    assert {node.domain for node in model.graph.node} <= {'', 'ai.onnx'}
    kinds = {node.op_type for node in model.graph.node}
    assert {'NonMaxSuppression', 'RoiAlign'} <= kinds
    resized = [node for node in model.graph.node if node.op_type == 'Resize']
    modes = {attribute.s for node in resized for attribute in node.attribute}
    assert b'nearest' in modes and b'cubic' not in modes, 'weights of tables are constants'
    (entry,) = [entry for entry in model.metadata_props if entry.key == 'ptnt_mm']
    assert json.loads(entry.value)['task'] == 'detection'


def test_runtimes_agree(folder: Path):
    photo = folder / 'photos' / '1.png'
    found = Deployed(folder / 'x.onnx')(photo)
    assert found.boxes.shape == (len(found.scores), 4) and len(found.scores) > 3
    assert found.boxes.max() <= 120 and found.masks.shape == (len(found.scores), 90, 120)
    assert (found.masks.any((1, 2))).any()
    again = Deployed(folder / 'x.onnx', runtime='openvino')([photo])[0]
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def take_the_exported_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the graph of x.onnx again: its export takes most of the time."""
    import onnx
    import onnx_ir

    whole = Path('x.onnx')
    body = whole.read_bytes()[: read_export_info(whole).length]
    model = onnx_ir.from_proto(onnx.load_from_string(body))
    exported = torch.onnx.ONNXProgram(model, None)
    monkeypatch.setattr(torch.export, 'export', lambda *args, **options: None)
    monkeypatch.setattr(torch.onnx, 'export', lambda *args, **options: exported)


@pytest.mark.parametrize(
    ('words', 'precision', 'stored'),
    [
        ('--out half.onnx --half', 'float16', b'_half'),
        ('--out half.xml --format openvino --half', 'float16', b'"f16"'),
        pytest.param(
            '--out int8.xml --int8 --calibrate photos', 'int8', b'FakeQuantize', marks=ON_LINUX
        ),
    ],
)
def test_the_command_writes_what_its_flags_say(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, precision: str, stored: bytes
):
    """Except for 8 bits, the command itself compares with the host, and fails if they differ.

    The next test writes an ONNX file of 8 bits.
    """
    monkeypatch.chdir(folder)
    take_the_exported_graph(monkeypatch)
    assert run('export', [*COMMAND, *words.split()]) == 0
    is_similar_and_stored_as(Path(words.split()[1]), precision, stored)


def is_similar_and_stored_as(out: Path, precision: str, stored: bytes) -> None:
    about, whole = read_export_info(out), Path('x.onnx')
    assert about.precision == precision
    assert out.read_bytes().count(stored) > 20
    inputs, _ = prepared(photograph(192, 256), about.resizing, about.size)
    found, expected = (load_runtime(file, None)(inputs) for file in (out, whole))
    assert abs(found['scores'] - expected['scores']).mean() < 0.1


def data_of_what_is_found() -> dict[str, object]:
    """The settings of a test set in which the boxes that the exported file finds are the truth."""
    photos = [Path('photos', f'{number}.png') for number in range(2)]
    truth = dict(images=[], annotations=[])
    truth['categories'] = [dict(id=i, name=name) for i, name in enumerate(CLASSES)]
    for number, found in enumerate(Deployed('x.onnx')(photos)):
        with Image.open(photos[number]) as image:
            width, height = image.size
        row = dict(id=number, file_name=photos[number].name, width=width, height=height)
        truth['images'].append(row)
        for (left, top, right, bottom), label in zip(found.boxes, found.labels, strict=True):
            box = [float(value) for value in (left, top, right - left, bottom - top)]
            corners = [left, top, right, top, right, bottom, left, bottom]
            row = dict(id=len(truth['annotations']) + 1, image_id=number, category_id=int(label))
            row.update(bbox=box, area=box[2] * box[3], iscrowd=0)
            row.update(segmentation=[[float(value) for value in corners]])
            truth['annotations'].append(row)
    Path('truth.json').write_text(json.dumps(truth))
    return {
        'test_dataloader.dataset.data_root': './',
        'test_dataloader.dataset.ann_file': 'truth.json',
        'test_dataloader.dataset.data_prefix.img': 'photos',
        'test_dataloader.num_workers': 0,
        'test_dataloader.persistent_workers': False,
        'test_evaluator.ann_file': 'truth.json',
        'test_evaluator.metric': 'bbox',
    }


@ON_LINUX
def test_metrics_are_printed_before_and_after_quantising(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
):
    """It finds nearly all boxes, because they are the truth."""
    monkeypatch.chdir(folder)
    take_the_exported_graph(monkeypatch)
    words = '--out evaluated.onnx --int8 --calibrate photos --evaluate --cfg-options'
    options = [f'{key}={value}' for key, value in data_of_what_is_found().items()]
    assert run('export', [*COMMAND, *words.split(), *options]) == 0
    printed, messages = capfd.readouterr()
    assert 'onnxruntime' not in messages
    before, after = printed.split('Quantised to 8 bits')
    plain, quantised = (
        [float(value) for value in re.findall(r'^AP +(\S+)$', said, re.MULTILINE)]
        for said in (before, after)
    )
    assert len(plain) == len(quantised) == 1 and plain[0] > 0.9
    assert 0 < quantised[0] < plain[0], 'the second file is evaluated, not the first one again'
    out = Path('evaluated.onnx')
    is_similar_and_stored_as(out, 'int8', b'QuantizeLinear')
    assert quantised_operators(out.read_bytes()) >= {'Conv', 'ConvTranspose', 'Gemm', 'MatMul'}
    assert read_export_info(out).length < 0.8 * read_export_info(Path('x.onnx')).length


def test_a_program_is_written_with_what_it_is(folder: Path):
    about = read_export_info(folder / 'x.onnx')
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    write_program(folder / 'x.pt2', program, about)
    said = {'ptnt_mm.json': ''}
    loaded = torch.export.load(folder / 'x.pt2', extra_files=said).module()
    assert loaded(-torch.ones(2)).tolist() == [0, 0]
    assert json.loads(said['ptnt_mm.json'])['checkpoint'] == 'x.pth'


def test_neither_torch_nor_a_host_is_imported(folder: Path):
    code = (
        'import sys\n'
        'for name in ("torch", "mmengine", "mmcv", "mmdet", "mmseg", "cv2", "rich", "packaging"):\n'
        '    sys.modules[name] = None\n'
        'from ptnt_mm.deploy import Deployed\n'
        'print(len(Deployed("x.onnx")("photos/1.png").boxes))'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        cwd=folder,
        env=dict(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(Deployed(folder / 'x.onnx')(folder / 'photos/1.png').boxes)


def test_features_are_not_evaluated(folder: Path, config: Config, monkeypatch):
    monkeypatch.chdir(folder)
    config = Config(config.to_dict())
    apply_options(config, data_of_what_is_found())
    config.model.test_cfg.rcnn.nms.type = 'soft_nms'
    with pytest.raises(UserError, match='`evaluate=True` needs boxes or a map'):
        export(config, 'x.pth', Path('y.onnx'), evaluate=True)


@pytest.mark.parametrize('runtime', ['onnxruntime', 'openvino'])
def test_threads_share_a_file(folder: Path, runtime: str):
    pytest.importorskip(runtime)
    run = load_runtime(folder / 'x.onnx', runtime)
    about = read_export_info(folder / 'x.onnx')
    images = [photograph(192, 256)[::step].copy() for step in (1, 2)]
    inputs = [prepared(image, about.resizing, about.size)[0] for image in images]
    expected = [run(each) for each in inputs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, inputs * 8))
    for one, other in zip(found, expected * 8, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in other)


def test_infer_takes_the_file(folder: Path, capsys: pytest.CaptureFixture):
    words = [str(folder / 'photos'), str(folder / 'x.onnx'), '--out', str(folder / 'out')]
    assert run('infer', [*words, '--score-thr', '0.01']) == 0
    found = json.loads((folder / 'out' / 'predictions.json').read_text())
    assert len(found['images']) == 2 and found['classes'] == list(CLASSES)
    assert found['images'][0]['detections'][0]['mask']['size'] == [192, 256]
    assert run('infer', [*words, '--device', 'cpu']) == 1
    assert 'an exported file' in capsys.readouterr().err


@pytest.mark.parametrize('shift', [1, np.nan])
def test_a_file_of_other_weights_is_noticed(
    folder: Path, config: Config, monkeypatch: pytest.MonkeyPatch, shift: float
):
    import onnxruntime

    class Moved(onnxruntime.InferenceSession):
        def run(self, names: list[str], inputs: dict) -> list:
            found = zip(names, super().run(names, inputs), strict=True)
            return [x + np.float32(shift) if name == 'boxes' else x for name, x in found]

    monkeypatch.chdir(folder)
    take_the_exported_graph(monkeypatch)
    monkeypatch.setattr(onnxruntime, 'InferenceSession', Moved)
    Path('moved.onnx').write_bytes(b'earlier')
    with pytest.raises(UserError, match='differs from the model by more than 0.001 at 192x256'):
        export(config, 'x.pth', Path('moved.onnx'), size=(192, 256), overwrite=True)
    assert Path('moved.onnx').read_bytes() == b'earlier' and not list(folder.glob('.*'))


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ('x.pth', 'expected a name that ends in .onnx for onnx'),
        ('x.onnx --format openvino', 'expected a name'),
        ('x.onnx', 'x.onnx exists'),
        ('x.xml', 'x.bin exists'),
        ('y.pt2 --half', '--half and --calibrate are for ONNX'),
        ('y.pt2 --int8 --calibrate photos', '--half and --calibrate are for ONNX'),
        ('y.pt2 --evaluate', '--evaluate runs .onnx and .xml files'),
        ('y.onnx --half --int8 --calibrate photos', 'cannot be combined'),
        ('y.onnx --int8', '--int8 and --calibrate FOLDER belong together'),
        ('y.onnx --calibrate photos', '--int8 and --calibrate FOLDER belong together'),
        ('y.onnx --int8 --calibrate none', 'there is no folder none'),
        ('y.onnx --int8 --calibrate empty', 'empty contains no files'),
        ('y.onnx --int8 --calibrate cut', 'cut/b.png cannot be read: image file is truncated'),
    ],
)
def test_what_cannot_work_is_said_before_the_work(
    folder: Path, monkeypatch, capsys: pytest.CaptureFixture, words: str, message: str
):
    monkeypatch.chdir(folder)
    (folder / 'empty').mkdir(exist_ok=True)
    (folder / 'cut').mkdir(exist_ok=True)
    shutil.copy(folder / 'photos' / '0.png', folder / 'cut' / 'a.png')
    (folder / 'cut' / 'b.png').write_bytes((folder / 'photos' / '0.png').read_bytes()[:-99])
    (folder / 'x.bin').touch()
    assert run('export', [*COMMAND, '--out', *words.split()]) == 1
    assert message in capsys.readouterr().err
    assert not list(folder.glob('y.*'))


@pytest.mark.parametrize(
    ('sizes', 'scale', 'tiling', 'canvas', 'named'),
    [
        (
            [(480, 640)],
            [1333, 800],
            None,
            (240, 320),
            '800x1067. This file resizes them to 240x320',
        ),
        ([(480, 640)], [1333, 800], None, (800, 1344), ''),
        ([(480, 640)], [1333, 800], None, (640, 864), ''),  # 0.8 of it
        ([(480, 640)], [1333, 800], None, (1344, 800), '`size=(800, 1088)`'),  # upright
        ([(640, 480), (480, 640)], [1333, 800], None, (1344, 800), ''),
        ([(512, 2048)], [2048, 512], None, (512, 512), '512x2048. This file resizes them to 128x'),
        ([(300, 300)], [512, 512], None, (512, 512), ''),
        ([(600, 800)], None, None, (300, 400), '600x800. This file resizes them to 300x400'),
        ([(3000, 4000)], [640, 640], [640, 0.2], (640, 640), ''),  # in tiles
        ([(3000, 4000)], [640, 640], [640, 0.2], (320, 320), '640x640. This file resizes them'),
    ],
)
def test_a_size_that_shrinks_the_images_is_remarked(sizes, scale, tiling, canvas, named):
    about = ExportInfo(
        **dict.fromkeys(('task', 'config', 'checkpoint', 'checkpoint_sha256', 'version'), ''),
        **dict(classes=None, thresholds={}, keep_ratio=True),
        **dict(size=canvas, scale=scale, tiling=tiling),
    )
    remark = remark_on_size([np.empty((*size, 3), np.uint8) for size in sizes], about)
    assert named in remark and bool(named) == bool(remark) and '\n' not in remark


def test_the_remark_comes_before_the_work(folder: Path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(torch.export, 'export', lambda *args, **options: sys.exit())
    with pytest.raises(SystemExit):
        run('export', ['x.py', 'x.pth', '--size', '96', '128', '--out', 'y.onnx'])
    assert 'export with --size 192 256, or train' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('sizes', 'expected'),
    [([(48, 64)], (96, 128)), ([(64, 48)], (128, 96)), ([(48, 64), (64, 48)], (128, 128))],
)
def test_the_suggested_size_holds_the_test_images(
    config: Config, tmp_path: Path, sizes: list[tuple[int, int]], expected: tuple[int, int]
):
    for i, (height, width) in enumerate(sizes):
        Image.new('RGB', (width, height)).save(tmp_path / f'{i}.png')
    config = Config(config.to_dict())
    config.test_dataloader.dataset.update(data_root=str(tmp_path), data_prefix=dict(img=''))
    config.test_dataloader.dataset.pipeline[1].update(scale=(120, 90), keep_ratio=True)
    assert '--size {} {}\n'.format(*expected) in after_new(tmp_path, config, has_errors=False)
    config.test_dataloader.dataset.pipeline.insert(1, dict(type='RandomCrop', crop_size=(9, 9)))
    assert 'ptnt export' not in after_new(tmp_path, config, has_errors=False)


def test_missing_packages_are_named_before_the_work(config: Config, tmp_path: Path, monkeypatch):
    for name in ('onnx', 'onnxruntime', 'onnxscript'):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match='pip install onnx onnxruntime onnxscript$'):
        export(config, 'x.pth', tmp_path / 'y.onnx')


def test_configs_of_other_hosts_are_refused(config: Config, tmp_path: Path):
    config = Config(dict(config.to_dict(), default_scope='mmpose'))
    with pytest.raises(UserError, match="default_scope='mmpose': expected mmdet or mmseg or"):
        export(config, 'x.pth', tmp_path / 'y.onnx')


def test_steps_that_change_images_otherwise_are_refused(folder: Path, config: Config):
    config = Config(config.to_dict())
    config.test_dataloader.dataset.pipeline.insert(1, dict(type='RandomCrop', crop_size=(9, 9)))
    with pytest.raises(UserError, match='the test pipeline has RandomCrop'):
        export(config, str(folder / 'x.pth'), folder / 'y.onnx')


@pytest.mark.parametrize(
    ('loader', 'named'),
    [
        (dict(imdecode_backend='tifffile'), "imdecode_backend='tifffile'"),
        (dict(color_type='grayscale'), "color_type='grayscale'"),
        (dict(type='LoadImageFromNDArray'), 'LoadImageFromNDArray'),
    ],
)
def test_loaders_of_other_pixels_are_refused(config: Config, loader: dict, named: str):
    config = Config(config.to_dict())
    config.test_dataloader.dataset.pipeline[0].update(loader)
    with pytest.raises(UserError, match=named):
        load_end_to_end(ConfigView(config), 'x.pth', None)


def test_layers_that_pool_into_fixed_grids_take_any_size(tmp_path: Path):
    """With the smallest backbone and two levels, because our graph takes a minute."""
    config = ptnt_mm.get_config('upernet_ptnt_s_160k_ade20k')
    config.model.backbone = dict(type='FourConvolutions', width=8)
    config.model.neck = None
    # The average over the full map has an operator; a small map has fewer than 6 rows.
    settings = dict(in_channels=[8] * 2, in_index=[2, 3], channels=8, pool_scales=(1, 6))
    config.model.decode_head.update(settings)
    config.model.auxiliary_head.update(in_channels=8)
    network = build_network(decided_model(config))
    body = to_onnx(take_graph(network, (64, 64), dynamic=True), network)
    file = tmp_path / 'x.onnx'
    file.write_bytes(body)
    assert 'AveragePool(' not in repr(network), "the file is compared with mmseg's own layers"
    for size in [(128, 160), (97, 459), (520, 64)]:
        inputs, _ = prepared(photograph(*size), Resizing(), None)
        differences = compare(load_runtime(file, None), network, inputs)
        assert differences.within(1e-3), differences


def test_a_program_of_torch_takes_any_size(micro_arch: dict):
    """With another batch, height and width: the graph contains no constants of the example."""
    config = narrow_config('semantic_fpn_tnt_s_40k_ade20k', micro_arch)
    # One block, and levels that are upsampled and pooled: the graph takes most of the time.
    config.model.backbone.update(out_indices=(0,))
    config.model.backbone.arch.depth = 1
    config.model.neck.update(out_channels=16, out_strides=(8, 32))
    settings = dict(in_channels=[16] * 2, in_index=[0, 1], feature_strides=[8, 32], channels=16)
    config.model.decode_head.update(settings)
    network = build_network(decided_model(config))
    program = take_graph(network, (64, 160), dynamic=True)
    drop_assumptions(program)
    program = program.module(check_guards=False)
    for size in [(133, 203), (33, 40), (256, 160)]:  # also smaller than the example
        images = torch.from_numpy(np.stack([photograph(*size)] * 3))
        sizes = torch.tensor([size] * 3)
        with torch.no_grad():
            torch.testing.assert_close(
                program(images, sizes), network(images, sizes), rtol=1e-4, atol=1e-3
            )


class Suppressing(torch.nn.Module):
    """Keeps as many boxes as do not overlap."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(N, 4), (N,) -> (M, 4)."""
        return boxes[nms(boxes, scores, 0.5)]


def test_a_program_of_torch_may_keep_a_single_box():
    boxes, scores = (
        torch.tensor([[0.0, 0, 9, 9], [20, 20, 29, 29], [40, 40, 49, 49]]),
        torch.ones(3),
    )
    program = torch.export.export(Suppressing(), (boxes, scores), strict=False)
    same = boxes[:1].repeat(3, 1)
    with pytest.raises(RuntimeError, match='>= 2'):
        program.module()(same, scores)
    drop_assumptions(program)
    assert len(program.module()(same, scores)) == 1 and len(program.module()(boxes, scores)) == 3


class Failing(torch.nn.Module):
    """Fails after it has noted which messages are dropped."""

    disabled = 0

    def forward(self, images: torch.Tensor, sizes: torch.Tensor) -> None:
        """Fail."""
        Failing.disabled = logging.root.manager.disable
        raise ValueError('inside')


@pytest.mark.parametrize('before', [logging.NOTSET, logging.INFO, logging.CRITICAL])
def test_messages_of_exporters_are_dropped_and_those_that_were_dropped_before(before: int):
    logging.disable(before)
    try:
        with pytest.raises(ValueError, match='inside'):
            take_graph(Failing(), (64, 64), dynamic=False)
        assert Failing.disabled == max(before, logging.WARNING)
        assert logging.root.manager.disable == before
    finally:
        logging.disable(logging.NOTSET)
