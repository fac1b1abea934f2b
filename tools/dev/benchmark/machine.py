"""Description of the machine of a measurement."""

import datetime
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from ptnt_mm.utils.versions import installed, provider

_PACKAGES = ('torch', 'mmengine', 'mmcv', 'mmcv-lite', 'mmdet', 'numpy')


def describe_machine(device: str, threads: int) -> dict[str, Any]:
    """Describe the date, the hardware and the package versions of a measurement."""
    if device == 'cpu':
        # What torch uses, which may be less than the processor has.
        vectors = torch.backends.cpu.get_cpu_capability()
        hardware = dict(device=_processor(), vectors=vectors, caches=_caches())
    else:
        hardware = dict(device=torch.cuda.get_device_name(device))
    versions = {provider(package): installed(package) for package in _PACKAGES}
    return {
        'date': datetime.date.today().isoformat(),
        **hardware,
        'threads': threads,
        'python': platform.python_version(),
        **{package: version for package, version in versions.items() if version},
    }


def _processor() -> str:
    """The processor's name, as far as the system reports it."""
    cpuinfo = Path('/proc/cpuinfo')
    lines = cpuinfo.read_text(encoding='utf-8').splitlines() if cpuinfo.exists() else []
    values = dict(map(str.strip, line.split(':', 1)) for line in lines if ':' in line)
    return values.get('model name', platform.processor() or platform.machine())


def _caches() -> str:
    """Sizes of a core's caches for data, from the first level on; empty where none is reported."""
    sizes = {}
    for cache in Path('/sys/devices/system/cpu/cpu0/cache').glob('index*'):
        with suppress(OSError):  # some systems leave out what the firmware does not state
            facts = [(cache / name).read_text().strip() for name in ('level', 'type', 'size')]
            level, kind, size = facts
            if kind != 'Instruction':
                sizes[level] = size
    return ' '.join(size for _, size in sorted(sizes.items()))
