"""The operators of mmcv._ext: our functions by mmcv's names, and their building blocks."""

from importlib import metadata

import torch
import torchvision

from . import (
    attention,
    boxes,
    convolutions,
    losses,
    polygons,
    rois,
    rotated_boxes,
    rotated_rois,
    sync_bn,
    upsampling,
)
from .computing import as_kernel

MADE_OF = {
    'nms': "torchvision's nms",
    'softnms': 'NumPy',
    'nms_match': 'NumPy',
    'bbox_overlaps': 'its formula',
    'roi_align': (
        "torchvision's roi_align; torch's matmul for the gradient on a CPU, grid_sample for maxima"
    ),
    'roi_pool': "torchvision's roi_pool of each bin",
    'deform_roi_pool': "torch's grid_sample",
    'deform_conv': "torchvision's deform_conv2d",
    'modulated_deform_conv': "torchvision's deform_conv2d",
    'masked_conv': "torch's indexing",
    'ms_deform_attn': "torch's grid_sample",
    'psamask': "torch's gather",
    'carafe': "torch's unfold and einsum",
    'carafe_naive': "torch's unfold and einsum",
    'sigmoid_focal_loss': 'its formula',
    'softmax_focal_loss': 'its formula',
    'sync_bn': 'its formulas',
    'box_iou_rotated, box_iou_quadri': 'their formula',
    'nms_rotated, nms_quadri': 'their formula, and a loop in NumPy',
    'diff_iou_rotated_2d': "torch's sort",
    'convex_iou, convex_giou': 'their formulas',
    'min_area_polygons, points_in_polygons': 'their formulas',
    'roi_align_rotated, riroi_align_rotated': "torch's embedding_bag",
    'rotated_feature_align': "torch's embedding_bag",
    'active_rotated_filter': "torch's scatter",
    'chamfer_distance': 'its formula',
}
"""Operators by mmcv's names."""


def get_compiler_version() -> str:
    """The compiler that mmcv shows in the table of the environment."""
    return f'none, operators of ptnt_mm on torchvision {torchvision.__version__}'


def get_compiling_cuda_version() -> str:
    """The CUDA version that torch and torchvision were built for."""
    return torch.version.cuda or 'not available'


# Every public function of these files has the name and the arguments of one in mmcv._ext.
_MODULES = (
    *(attention, boxes, convolutions, losses, polygons),
    *(rois, rotated_boxes, rotated_rois, sync_bn, upsampling),
)

OPERATORS = {
    name: as_kernel(function)
    for module in _MODULES
    for name, function in vars(module).items()
    if getattr(function, '__module__', '') == module.__name__ and not name.startswith('_')
} | {function.__name__: function for function in (get_compiler_version, get_compiling_cuda_version)}
"""The content of the module mmcv._ext."""


def left_out(name: str):
    """Placeholder for a missing operator: it raises when it is called, so that imports work."""
    if name.startswith('_'):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(
            f'{name} of mmcv is not among the operators that ptnt_mm builds from torchvision: to '
            f'get it, {_how_to_compile()}'
        )

    return missing


def _how_to_compile() -> str:
    """The way to a compiled mmcv, of the same family as this one."""
    try:
        metadata.version('onedl-mmcv')
    except metadata.PackageNotFoundError:
        return (
            'compile mmcv: python -m pip uninstall -y mmcv-lite && MMCV_WITH_OPS=1 python -m pip '
            'install --no-build-isolation --no-binary mmcv mmcv==2.1.0'
        )
    return 'install a compiled onedl-mmcv: "Compiling mmcv" in docs/install.md'
