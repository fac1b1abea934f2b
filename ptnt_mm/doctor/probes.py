"""Probes of the doctor, each of which tests one installed package in another process.

A broken package can do more than raise: it can end the process. So `ask_probes` runs this file with
the names of probes, and again with the remaining ones if one of them ended it. It imports only the
standard library at its top.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PROBE_SECONDS = 180  # for all of them
_MARK = 'answer of the probe: '


@dataclass(frozen=True)
class Answer:
    """The result of a probe, or its error."""

    works: bool
    text: str


def probe_cuda() -> str:
    """Run an addition on each GPU; torch must find one if the driver does."""
    import torch

    built = f'torch is built for CUDA {torch.version.cuda}'
    if cpu_is_wanted() or not (nvidia_driver() or torch.cuda.is_available()):
        return f'CPU only ({built})'
    if not torch.cuda.is_available():
        raise RuntimeError(f'torch cannot use the driver {nvidia_driver()} ({built})')
    gpus = []
    for index in range(torch.cuda.device_count()):
        torch.ones(1, device=f'cuda:{index}').add(1).item()
        capability = '.'.join(map(str, torch.cuda.get_device_capability(index)))
        gpus.append(f'{torch.cuda.get_device_name(index)} ({capability})')
    return f'{torch.version.cuda}, driver {nvidia_driver()}, {", ".join(gpus)}'


def probe_operators() -> str:
    """Run one of mmcv's operators on the CPU and on each GPU, and return its provider."""
    import torch

    from ptnt_mm.mmcv_ops import place

    place.offer()
    from mmcv.ops import nms

    boxes = torch.tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 9.0, 8.0], [20.0, 20.0, 29.0, 29.0]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    gpus = 0 if cpu_is_wanted() else torch.cuda.device_count()
    devices = ['cpu', *(f'cuda:{index}' for index in range(gpus))]
    for device in devices:
        kept = nms(boxes.to(device), scores.to(device), iou_threshold=0.5)[1].tolist()
        if kept != [0, 2]:
            raise RuntimeError(f'nms on {device} keeps boxes {kept} instead of [0, 2]')
    return f'{place.source().kind}: nms ran on {", ".join(devices)}'


def probe_import(module: str) -> str:
    """Import a module."""
    __import__(module)
    return 'imports'


def probe_host(module: str) -> str:
    """Import the models of a host, which need mmcv's operators, or ours if those are missing."""
    from ptnt_mm.mmcv_ops import place

    place.offer()
    return probe_import(module)


def probe_registry() -> str:
    """Look up our classes in MMEngine's registry."""
    from mmengine.registry import MODELS

    import ptnt_mm

    for name in ('PyramidTNT', 'TransposedConvNeck'):
        if MODELS.get(name) is None:
            raise LookupError(f"{name} is not in MMEngine's registry of models")
    return f'{ptnt_mm.__version__}, registered'


PROBES = {
    'torch': lambda: probe_import('torch'),
    'cuda': probe_cuda,
    'operators': probe_operators,
    'mmengine': lambda: probe_import('mmengine.runner'),
    # mmseg's models need ftfy and regex as well.
    'mmdet': lambda: probe_host('mmdet.models'),
    'mmsegmentation': lambda: probe_host('mmseg.models'),
    'mmpretrain': lambda: probe_host('mmpretrain.models'),
    'pkg_resources': lambda: probe_import('pkg_resources'),
    'opencv': lambda: probe_import('cv2'),
    'ptnt_mm': probe_registry,
}


def ask_probes(names: list[str]) -> Iterator[tuple[str, Answer]]:
    """Run probes, as many as possible in one process; yield each one's name and answer."""
    while names:
        answers, end = _run_process(names)
        yield from answers
        names = names[len(answers) :]
        if names:
            yield names.pop(0), Answer(False, end)


def _run_process(names: list[str]) -> tuple[list[tuple[str, Answer]], str]:
    """Run probes in one process: those that answered, and how the process ended."""
    paths = (str(PACKAGE.parent), os.environ.get('PYTHONPATH', ''))
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, paths))}
    # -P keeps the folder of this file, and its `models`, off the import path.
    command = [sys.executable, '-P', '-W', 'ignore', __file__, *names]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            printed, errors = process.communicate(timeout=PROBE_SECONDS)
            last = (errors.strip() or 'it printed nothing').splitlines()[-1]
            end = f'it ended the process: {last}'
            if process.returncode < 0:
                end = f'it ended the process with {signal.Signals(-process.returncode).name}'
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
            end = f'it gave no answer within {PROBE_SECONDS} s'
    # Libraries also print.
    lines = (line.partition(_MARK) for line in printed.splitlines())
    answers = [json.loads(answer) for _, mark, answer in lines if mark]
    return [(name, Answer(*rest)) for name, *rest in answers], end


def nvidia_driver() -> str:
    """Read the version of the NVIDIA driver; empty if none works."""
    command = ['nvidia-smi', '--query-gpu=driver_version', '--format=csv,noheader']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return done.stdout.split('\n')[0].strip() if done.returncode == 0 else ''


def cpu_is_wanted() -> bool:
    """Whether the user has disabled the GPUs."""
    return os.environ.get('PTNT_CUDA') == '0'


def _run_probes(names: list[str]) -> None:
    """Print a line for each probe as soon as it has an answer."""
    gc.disable()  # most of the work is imports, which make no garbage
    for name in names:
        try:
            answer = (name, True, PROBES[name]())
        except Exception as error:
            answer = (name, False, f'{type(error).__name__}: {" ".join(str(error).split())[:300]}')
        print(f'\n{_MARK}{json.dumps(answer)}', flush=True)


if __name__ == '__main__':
    _run_probes(sys.argv[1:])
    # Taking torch apart lasts seconds.
    os._exit(0)
