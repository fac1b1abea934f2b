"""Try packages in another process, because importing a broken one may end the process.

Runs as a script, and imports only the standard library at its top.
"""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

PROBE_SECONDS = 180  # for one process


def try_cuda() -> None:
    """Compute on the GPU, if the driver finds one and the user has not hidden it."""
    import torch

    print(f'GPUs that torch can use: {torch.cuda.device_count()}')
    driver = shutil.which('nvidia-smi')
    hidden = os.environ.get('CUDA_VISIBLE_DEVICES') in ('', '-1')
    if driver and not hidden and subprocess.run([driver], capture_output=True).returncode == 0:
        torch.ones(1, device='cuda').add(1).item()


def import_ptnt_mm() -> None:
    """Register our classes, and provide mmcv's operators if it has none."""
    import ptnt_mm  # noqa: F401


def try_operators() -> None:
    """Run one of mmcv's operators on the CPU and, if there is one, on the GPU."""
    import torch

    import_ptnt_mm()
    from mmcv.ops import nms

    for device in ['cpu', 'cuda'] if torch.cuda.is_available() else ['cpu']:
        nms(torch.ones(2, 4, device=device), torch.ones(2, device=device), iou_threshold=0.5)


def try_host(module: str) -> None:
    """Import the models of a host, which need mmcv's operators."""
    import_ptnt_mm()
    import_module(module)


def try_ptnt_mm() -> None:
    """Look our backbone up in MMEngine's registry, and import what the commands register."""
    import_ptnt_mm()
    import_module('ptnt_mm.workbench')
    if import_module('mmengine.registry').MODELS.get('PyramidTNT') is None:
        raise LookupError("PyramidTNT is not in MMEngine's registry of models")


def print_environment() -> None:
    """Print how threads wait, and what MMEngine collects, except versions and compiler flags."""
    import_ptnt_mm()
    for name in ('OMP_NUM_THREADS', 'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT'):
        if name in os.environ:
            print(f'{name}: {os.environ[name]}')
    with suppress(ImportError):  # it needs distutils, of setuptools
        from mmengine.utils.dl_utils import collect_env

        for kind, text in collect_env().items():
            if kind.startswith(('sys.platform', 'GPU', 'CUDA_HOME', 'NVCC', 'GCC', 'TorchVision')):
                print(f'{kind}: {text}')


PROBES = {
    'torch': partial(import_module, 'torch'),
    'CUDA': try_cuda,
    'setuptools': partial(import_module, 'pkg_resources'),
    'OpenCV': partial(import_module, 'cv2'),
    'mmengine': partial(import_module, 'mmengine.runner'),
    'mmcv operators': try_operators,
    'mmdet': partial(try_host, 'mmdet.models'),
    'mmsegmentation': partial(try_host, 'mmseg.models'),
    'mmpretrain': partial(try_host, 'mmpretrain.models'),
    'onedl-mmrotate': partial(try_host, 'mmrotate.models'),
    'ptnt_mm': try_ptnt_mm,
    'environment': print_environment,
}


def find_errors(names: list[str]) -> tuple[dict[str, str], str]:
    """Run probes in one process, and if that fails, each in its own to find the broken ones.

    Returns:
        The errors of those that fail, and what all of them printed.
    """
    error, printed = _run(names)
    if not error:
        return {}, printed
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(names, pool.map(lambda name: _run([name]), names), strict=True))
    errors = {name: error for name, (error, _) in results.items() if error}
    return errors, ''.join(printed for _, printed in results.values())


def _run(names: list[str]) -> tuple[str, str]:
    """Run probes in a process; return its error, if there is one, and what it printed."""
    command = [sys.executable, '-W', 'ignore', __file__, *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return f'no answer within {PROBE_SECONDS} s', ''
    if done.returncode < 0:
        return f'the process ended with {signal.Signals(-done.returncode).name}', ''
    how = done.stderr.splitlines()[-1:] or [f'the process ended with status {done.returncode}']
    return how[0] if done.returncode else '', done.stdout


if __name__ == '__main__':
    # The folder of the package, instead of this one.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    try:
        for name in sys.argv[1:]:
            PROBES[name]()
    except Exception as error:
        sys.exit(f'{type(error).__name__}: {" ".join(str(error).split())[:300]}')
    sys.stdout.flush()
    os._exit(0)  # tearing down torch takes seconds
