"""Export a model to a file that runs without torch, and check it, for ``ptnt export``."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from mmengine.config import Config

from ptnt_mm.deploy.pixels import prepared
from ptnt_mm.deploy.runtimes import load_runtime
from ptnt_mm.utils.atomic_files import check_new, files_written_atomically
from ptnt_mm.utils.console import fitted, for_user
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.metrics import readable
from ptnt_mm.utils.progress import waiting
from ptnt_mm.utils.tables import to_lines
from ptnt_mm.weights.reader.files import require_checkpoint
from ptnt_mm.workbench.check.inspection import check_before_testing
from ptnt_mm.workbench.config.read import require_keys
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.load_in_range import stated_range
from ptnt_mm.workbench.export.comparison import TOLERANCE, check_results
from ptnt_mm.workbench.export.evaluation import (
    check_loading,
    evaluate_file,
    file_size,
    images_of,
    remark_on_size,
    test_images,
    usual_size,
)
from ptnt_mm.workbench.export.format_names import check_options, choose_format, files_of
from ptnt_mm.workbench.export.formats import (
    as_arrays,
    halved,
    quantised,
    take_program,
    write_onnx,
    write_program,
)
from ptnt_mm.workbench.export.supported_models import check_config, load_end_to_end

_CALIBRATION = 100  # images of the folder that are used


def export(
    config: Config,
    checkpoint: Path | str,
    out: Path | str,
    *,
    format: str | None = None,
    size: tuple[int, int] | None = None,
    half: bool = False,
    calibrate: Path | str | None = None,
    evaluate: bool = False,
    overwrite: bool = False,
) -> Path:
    """Export as ``ptnt export`` does, and compare with the results of the host.

    Args:
        config: A complete config.
        checkpoint: A training checkpoint.
        out: The file to write: .onnx, .xml (OpenVINO) or .pt2.
        format: By default from the suffix of ``out``: 'onnx', 'openvino' or 'torch-export'.
        size: A fixed height and width in pixels: the fastest.
        half: If True, store weights as float16.
        calibrate: Folder of typical images, to measure the ranges of values on.
        evaluate: If True, print the file's metrics on the test set.
        overwrite: If True, replace an existing file.

    Returns:
        The file.

    Raises:
        UserError: for everything that the user can correct, and if the file's results differ; no
            file is then written, and an earlier one stays.
    """
    out = Path(out)
    calibrate = None if calibrate is None else Path(calibrate)
    format = choose_format(out, format)
    check_options(format, half, calibrate, evaluate)
    for file in files_of(out):
        check_new(file, overwrite)
    require_keys(config, ('model', 'test_dataloader'))
    view = ConfigView(config)
    check_config(view)
    size = file_size(view, size)
    require_checkpoint(checkpoint)
    if evaluate:
        view.require_files(('test',))
        check_before_testing(view)
    if calibrate is not None:
        with waiting('Reading the images'):
            for _ in _calibration_images(calibrate, view):  # an unreadable one is an error now
                pass
    with waiting('Loading the model'):
        network, about = load_end_to_end(view, checkpoint, size)
    if evaluate and network.task == 'features':
        raise UserError('`evaluate=True` needs boxes or a map, and this file has none: omit it')
    images = test_images(view, 3)
    if size is not None and (remark := remark_on_size(images, about)):
        print(for_user(remark))
    # The size of a usual image in the network.
    shape = size or about.resizing.size_of((480, 640))
    aim = f'images of {"any size" if size is None else f"{size[0]}x{size[1]}"}'
    message = f"Exporting for {aim}, then comparing the file's results with the model's"
    print(fitted(message, sys.stdout))
    if size is None:
        faster = ', '.join(map(str, usual_size(view)))
        print(for_user(f'A fixed size, such as `size=({faster})`, is faster to export and to run'))
    start = time.monotonic()
    with waiting('Exporting the model'):
        program, body = take_program(network, shape, size is None, format)
    # Even after an interruption, every file that is in its place has passed.
    with files_written_atomically(*reversed(files_of(out))) as folder:
        file = folder / out.name
        if format == 'torch-export':
            write_program(file, program, about)
            run = as_arrays(program, network)
        else:
            body = halved(body) if half else body
            write_onnx(file, body, replace(about, precision='float16' if half else 'float32'))
            run = load_runtime(file, None)
        print(f'Exported in {time.monotonic() - start:.0f} s: {out}, {_megabytes(file)}')
        tolerance = 10 * TOLERANCE if half else TOLERANCE
        with waiting("Comparing the file's results with the model's"):
            check_results(run, network, images, shape, size, tolerance)
        if calibrate is not None:
            if evaluate:
                _print_metrics(config, file, out)
            inputs = (
                prepared(image, about.resizing, size)[0]
                for image in _calibration_images(calibrate, view)
            )
            with waiting('Quantising to 8 bits'):
                write_onnx(file, quantised(body, inputs), replace(about, precision='int8'))
            print(f'Quantised to 8 bits: {out}, {_megabytes(file)}')
    if evaluate:
        _print_metrics(config, out, out)
    return out


def _calibration_images(folder: Path, view: ConfigView) -> Iterator[np.ndarray]:
    return islice(images_of(folder, stated_range(view.test)), _CALIBRATION)


def suggested_size(config: Config) -> tuple[int, int] | None:
    """A fixed height and width for images as in the test set; None if it cannot be exported."""
    view = ConfigView(config)
    try:
        check_config(view)
        check_loading(view)
        return usual_size(view)
    except UserError:
        return None


def _print_metrics(config: Config, file: Path, out: Path) -> None:
    """Evaluate a file that is, or will be, ``out``."""
    metrics = evaluate_file(config, file, out.parent / f'{out.stem}_evaluation')
    print(to_lines(readable(metrics)))


def _megabytes(out: Path) -> str:
    return f'{sum(file.stat().st_size for file in files_of(out)) / 1e6:.0f} MB'
