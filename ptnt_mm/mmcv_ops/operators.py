"""The table of operators: mmcv's names, our functions, and what each is made of."""

import torch
import torchvision

from . import attention, boxes, convolutions, losses, rois, sync_bn, upsampling
from .computing import as_kernel

# operator: (what it is made of, its functions in mmcv._ext)
_TABLE = {
    'nms': ("torchvision's nms", [boxes.nms]),
    'softnms': ('NumPy', [boxes.softnms]),
    'nms_match': ('NumPy', [boxes.nms_match]),
    'bbox_overlaps': ('its formula', [boxes.bbox_overlaps]),
    'roi_align': (
        "torchvision's roi_align; torch's matmul for the gradient on a CPU, grid_sample for maxima",
        [rois.roi_align_forward, rois.roi_align_backward],
    ),
    'roi_pool': (
        "torchvision's roi_pool of each bin",
        [rois.roi_pool_forward, rois.roi_pool_backward],
    ),
    'deform_roi_pool': (
        "torch's grid_sample",
        [rois.deform_roi_pool_forward, rois.deform_roi_pool_backward],
    ),
    'deform_conv': (
        "torchvision's deform_conv2d",
        [
            convolutions.deform_conv_forward,
            convolutions.deform_conv_backward_input,
            convolutions.deform_conv_backward_parameters,
        ],
    ),
    'modulated_deform_conv': (
        "torchvision's deform_conv2d",
        [convolutions.modulated_deform_conv_forward, convolutions.modulated_deform_conv_backward],
    ),
    'masked_conv': (
        "torch's indexing",
        [convolutions.masked_im2col_forward, convolutions.masked_col2im_forward],
    ),
    'ms_deform_attn': (
        "torch's grid_sample",
        [attention.ms_deform_attn_forward, attention.ms_deform_attn_backward],
    ),
    'psamask': ("torch's gather", [attention.psamask_forward, attention.psamask_backward]),
    'carafe': (
        "torch's unfold and einsum",
        [upsampling.carafe_forward, upsampling.carafe_backward],
    ),
    'carafe_naive': (
        "torch's unfold and einsum",
        [upsampling.carafe_naive_forward, upsampling.carafe_naive_backward],
    ),
    'sigmoid_focal_loss': (
        'its formula',
        [losses.sigmoid_focal_loss_forward, losses.sigmoid_focal_loss_backward],
    ),
    'softmax_focal_loss': (
        'its formula',
        [losses.softmax_focal_loss_forward, losses.softmax_focal_loss_backward],
    ),
    'sync_bn': (
        'its formulas',
        [
            sync_bn.sync_bn_forward_mean,
            sync_bn.sync_bn_forward_var,
            sync_bn.sync_bn_forward_output,
            sync_bn.sync_bn_backward_param,
            sync_bn.sync_bn_backward_data,
        ],
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
