"""A common interface of the runtimes for exported files on a CPU: arrays in, arrays out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ptnt_mm.utils.errors import UserError, message_of

Run = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
"""Inputs by name -> outputs by name."""


def load_onnxruntime(file: Path, threads: int, precision: str) -> Run:
    """Load an ONNX file with ONNX Runtime, which computes in the file's own precision."""
    if precision != 'f32':
        raise UserError(f'ONNX Runtime has no precision {precision!r}: choose openvino')
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=['CPUExecutionProvider'])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def load_openvino(file: Path, threads: int, precision: str) -> Run:
    """Load an ONNX or XML file with OpenVINO; ``precision`` is 'f32' or 'bf16'."""
    import openvino

    options = dict(PERFORMANCE_HINT='LATENCY', INFERENCE_PRECISION_HINT=precision)
    if threads:
        options['INFERENCE_NUM_THREADS'] = threads
    compiled = openvino.Core().compile_model(file, 'CPU', options)
    names = [output.get_any_name() for output in compiled.outputs]
    requests = threading.local()  # a request has the results of one call, so each thread has one

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if not hasattr(requests, 'own'):
            requests.own = compiled.create_infer_request()
        found = requests.own.infer(inputs)
        return {name: found[i].copy() for i, name in enumerate(names)}

    return run


RUNTIMES = {'onnxruntime': load_onnxruntime, 'openvino': load_openvino}


def load_runtime(file: Path, runtime: str | None, threads: int = 0, precision: str = 'f32') -> Run:
    """Load a file; for the arguments see :class:`~ptnt_mm.deploy.Deployed`.

    Raises a UserError if the runtime is unknown, is not installed, or refuses the file; the
    returned function raises one if it refuses an image.
    """
    name = runtime or ('openvino' if file.suffix == '.xml' else 'onnxruntime')
    if name not in RUNTIMES or (name == 'onnxruntime' and file.suffix == '.xml'):
        raise UserError(
            f'{file} with runtime {name!r}: onnxruntime runs .onnx, openvino runs .onnx and .xml'
        )
    with _explained(f'{name} cannot load {file}'):
        run = RUNTIMES[name](file, threads, precision)

    def checked(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        height, width = inputs['images'].shape[1:3]
        with _explained(f'{name} cannot run {file} on {height}x{width} pixels'):
            return run(inputs)

    return checked


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Convert any exception of a runtime to a UserError of one line."""
    try:
        yield
    except UserError:
        raise
    except ModuleNotFoundError as error:
        raise UserError(f'{error.name} is not installed: pip install {error.name}') from error
    except Exception as error:  # runtimes define their own exceptions
        raise UserError(f'{what}: {" ".join(message_of(error).split())[:300]}') from error
