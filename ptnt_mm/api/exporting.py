"""Export a model to a file that runs without torch, and check it, for ``ptnt export``."""

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import init_default_scope
from torch.export import ExportedProgram

from ptnt_mm.checkpoints.read import local_file, require_checkpoint
from ptnt_mm.deploy.export_info import ExportInfo
from ptnt_mm.deploy.pixels import prepared, resize, target_size
from ptnt_mm.deploy.runtimes import load_exported
from ptnt_mm.engine.build import build_model
from ptnt_mm.engine.class_names import find_classes
from ptnt_mm.engine.config import require_keys
from ptnt_mm.engine.data_files import check_data_files
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.engine.strict_loading import load_strictly
from ptnt_mm.export.comparison import TOLERANCE, compare, sizes_to_check
from ptnt_mm.export.end_to_end import EndToEndModel
from ptnt_mm.export.evaluation import evaluate_file, images_of, resizing, test_images
from ptnt_mm.export.formats import (
    FORMATS,
    PACKAGES,
    as_arrays,
    halved,
    take_graph,
    to_onnx,
    write_onnx,
    write_program,
)
from ptnt_mm.export.int8 import quantised
from ptnt_mm.export.supported_models import build_network
from ptnt_mm.utils.atomic_files import check_new, sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import printable
from ptnt_mm.version import __version__

_CALIBRATION = 100  # images of the folder that are used


def export(
    config: Config,
    checkpoint: Path | str,
    out: Path,
    *,
    format: str | None = None,
    size: tuple[int, int] | None = None,
    half: bool = False,
    calibrate: Path | None = None,
    evaluate: bool = False,
    overwrite: bool = False,
) -> Path:
    """Export as ``ptnt export`` does, and compare with the results of the host.

    Args:
        config: A complete config.
        checkpoint: A training checkpoint.
        out: The file to write; OpenVINO's has a .bin next to it.
        format: 'onnx', 'openvino' or 'torch-export'; None to choose by the suffix.
        size: Height and width of the input in pixels; None for images of any size.
        half: Store weights as float16.
        calibrate: A folder of images to quantise to 8 bits with; None for floating point.
        evaluate: Whether to print the metrics on the test set too.
        overwrite: Whether to replace an existing file.

    Returns:
        The file.

    Raises:
        UserError: for everything that the user can correct, and if the file's results differ.
    """
    format = _choose_format(out, format)
    _check_choices(format, half, calibrate, evaluate)
    for file in _files(out):
        check_new(file, overwrite)
    _check_packages(format, calibrate)
    require_keys(config, ('model', 'test_dataloader'))
    _check_host(config)
    require_checkpoint(checkpoint)
    if evaluate:
        check_data_files(config, ('test',))
    if calibrate is not None:
        next(images_of(calibrate))
    network, about = _read_model(config, checkpoint, size)
    if evaluate and network.task == 'features':
        raise UserError('--evaluate needs boxes or a map, and this file has none: leave it out')
    # The size of a usual image in the network.
    shape = size or target_size((480, 640), about.scale, about.keep_ratio, None)
    start = time.monotonic()
    program, body = _take(network, shape, size is None, format)
    if format == 'torch-export':
        write_program(out, program, about)
        run = as_arrays(program, network)
    else:
        body = halved(body) if half else body
        write_onnx(out, body, replace(about, precision='float16' if half else 'float32'))
        run = load_exported(out, None)
    print(f'Exported in {time.monotonic() - start:.0f} s: {out}, {_megabytes(out)}')
    _check(run, network, config, shape, size, TOLERANCE * (10 if half else 1))
    if evaluate:
        _print_metrics(config, out)
    if calibrate is not None:
        images = islice(images_of(calibrate), _CALIBRATION)
        inputs = (prepared(image, about.scale, about.keep_ratio, size)[0] for image in images)
        write_onnx(out, quantised(body, inputs), replace(about, precision='int8'))
        print(f'Quantised to 8 bits: {out}, {_megabytes(out)}')
        if evaluate:
            _print_metrics(config, out)
    return out


def _take(
    network: EndToEndModel, shape: tuple[int, int], dynamic: bool, format: str
) -> tuple[ExportedProgram, bytes]:
    """Export the graph, also to ONNX except for torch-export."""
    try:
        program = take_graph(network, shape, dynamic)
        return program, b'' if format == 'torch-export' else to_onnx(program, network)
    except UserError:
        raise
    except Exception as error:  # models may contain any operator
        why = printable(next(filter(None, str(error).splitlines()), type(error).__name__))
        advice = 'Try --size H W' if dynamic else 'docs/deploy.md lists what can be exported'
        raise UserError(f'torch cannot export a graph of this model: {why}. {advice}') from error


def _choose_format(out: Path, format: str | None) -> str:
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    format = format or by_suffix.get(out.suffix)
    if format is None or FORMATS[format] != out.suffix:
        expected = ', '.join(f'{suffix} for {name}' for name, suffix in FORMATS.items())
        raise UserError(f'--out {out}: expected a name that ends in {expected}')
    return format


def _check_choices(format: str, half: bool, calibrate: Path | None, evaluate: bool) -> None:
    if format == 'torch-export' and (half or calibrate):
        raise UserError('--half and --int8 are for ONNX and OpenVINO, not for torch-export')
    if format == 'torch-export' and evaluate:
        raise UserError('--evaluate runs .onnx and .xml files, not .pt2: leave it out')
    if half and calibrate:
        raise UserError('--half and --int8 exclude each other: choose one')


def _check_packages(format: str, calibrate: Path | None) -> None:
    """Check packages before the graph is exported, which takes minutes."""
    needed = {*PACKAGES[format], *(('onnxruntime',) if calibrate else ())}
    if missing := sorted(name for name in needed if find_spec(name) is None):
        raise UserError(f'exporting needs more packages: pip install {" ".join(missing)}')


def _check_host(config: Config) -> None:
    """Raise a UserError for classifiers, whose preprocessing is not supported."""
    scope = scope_of(config)
    host = HOSTS.get(scope)
    if host is None or host.task == 'classification':
        name = config.filename or 'the config'
        raise UserError(f'{name} has default_scope={scope!r}: expected mmdet or mmseg')


def _read_model(
    config: Config, checkpoint: Path | str, size: tuple | None
) -> tuple[EndToEndModel, ExportInfo]:
    """The network with its weights, and the metadata of the file."""
    scale, keep_ratio = resizing(config)
    model = revert_sync_batchnorm(build_model(config, config.filename or 'the config')).eval()
    init_default_scope(scope_of(config))
    classes = find_classes(load_strictly(model, str(checkpoint)), config, model)['classes']
    network = build_network(model)
    if network.task == 'features':
        kind = type(model).__name__
        print(f'{kind} is exported only as backbone and neck: docs/deploy.md lists complete models')
    about = ExportInfo(
        task=network.task,
        classes=None if classes is None else list(classes),
        size=None if size is None else list(size),
        scale=scale,
        keep_ratio=keep_ratio,
        thresholds=network.thresholds,
        config=Path(config.filename or 'config').name,
        checkpoint=local_file(checkpoint).name,
        checkpoint_sha256=sha256(local_file(checkpoint)),
        version=__version__,
    )
    return network, about


def _check(
    run: Callable[[dict], dict],
    network: EndToEndModel,
    config: Config,
    shape: tuple[int, int],
    canvas: tuple[int, int] | None,
    tolerance: float,
) -> None:
    """Compare with the host at three sizes, padded to the canvas of a fixed-size file."""
    wrong, found = [], 0
    # A test set may have fewer images than there are sizes.
    for image, size in zip(cycle(test_images(config, 3)), sizes_to_check(shape), strict=False):
        pixels = resize(image, size)
        if canvas is not None:
            padding = [(0, full - part) for full, part in zip(canvas, size, strict=True)]
            pixels = np.pad(pixels, [*padding, (0, 0)])
        differences = compare(run, network, pixels, size)
        print(differences)
        found += differences.matched
        if not differences.within(tolerance):
            wrong.append(f'{size[0]}x{size[1]}')
    if network.task == 'detection' and not found:
        print(
            'NO BOXES: the model has no predictions for these images, so none were compared; try a '
            'lower score_thr in --cfg-options'
        )
    if wrong:
        raise UserError(
            f'the file differs from the model by more than {tolerance:g} at {", ".join(wrong)}: '
            'do not use it, and report it with the lines above'
        )


def _print_metrics(config: Config, out: Path) -> None:
    metrics = evaluate_file(config, out, out.parent / f'{out.stem}_evaluation')
    print('\n'.join(f'{name}: {value:.4f}' for name, value in metrics.items()))


def _files(out: Path) -> list[Path]:
    """The files to write: OpenVINO's weights are next to their .xml."""
    return [out, out.with_suffix('.bin')] if out.suffix == '.xml' else [out]


def _megabytes(out: Path) -> str:
    return f'{sum(file.stat().st_size for file in _files(out)) / 1e6:.0f} MB'
