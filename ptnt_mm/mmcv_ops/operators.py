"""The table of operators: mmcv's names, our functions, and what each is made of."""

import torch
import torchvision

from . import boxes, losses, rois
from .computing import as_kernel

# operator: (what it is made of, its functions in mmcv._ext)
_TABLE = {
    'nms': ("torchvision's nms", [boxes.nms]),
    'roi_align': ("torchvision's roi_align", [rois.roi_align_forward, rois.roi_align_backward]),
    'sigmoid_focal_loss': (
        'the formula',
        [losses.sigmoid_focal_loss_forward, losses.sigmoid_focal_loss_backward],
    ),
}

MADE_OF = {name: parts for name, (parts, _) in _TABLE.items()}


def get_compiler_version() -> str:
    """What mmcv shows as its compiler in the table of the environment."""
    return f'none, operators of ptnt_mm on torchvision {torchvision.__version__}'


def get_compiling_cuda_version() -> str:
    """The CUDA version that torch and torchvision were built for."""
    return torch.version.cuda or 'not available'


OPERATORS = {
    function.__name__: as_kernel(function) for _, group in _TABLE.values() for function in group
} | {function.__name__: function for function in (get_compiler_version, get_compiling_cuda_version)}
"""What the module mmcv._ext holds."""


def left_out(name: str):
    """Stand for an operator that we lack: it raises when it is called, so that imports work."""
    if name.startswith('_'):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(
            f'{name} of mmcv is not among the operators that ptnt_mm makes of torchvision: to have '
            'it, compile mmcv: python -m pip uninstall -y mmcv-lite && MMCV_WITH_OPS=1 python -m '
            'pip install --no-build-isolation --no-binary mmcv mmcv==2.1.0'
        )

    return missing
