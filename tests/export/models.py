"""Models of a thousandth of the cost whose random weights detect something."""

from pathlib import Path

import mmdet
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from torch import Tensor, nn

import ptnt_mm
from configs import models
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.zoo import config_from_file

_LAST = (
    *('retina_cls', 'rtm_cls', 'rpn_cls', 'fc_cls', 'conv_seg', 'conv_logits', 'conv_cls'),
    *('gfl_cls', 'gfl_reg', 'atss_cls', 'atss_centerness', 'conv_centerness'),
    *('tood_cls', 'cls_prob_module', 'reg_offset_module', 'controller', 'rtm_kernel'),
)
"""Layers whose outputs are scores, or distributions, offsets and kernels: with their initial
weights, all of them are nearly equal."""


@MODELS.register_module()
class FourConvolutions(nn.Module):
    """Maps at strides 4, 8, 16 and 32 with few layers, each of which lengthens an export.

    Args:
        width: Channels of each map.
    """

    def __init__(self, width: int):
        super().__init__()
        steps = ((3, 4), (width, 2), (width, 2), (width, 2))
        self.convs = nn.ModuleList(
            nn.Conv2d(channels, width, 3, stride, padding=1) for channels, stride in steps
        )

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = [image]
        for conv in self.convs:
            maps.append(conv(maps[-1]).relu())
        return maps[1:]


def narrow_config(name: str, arch: dict) -> Config:
    config = models.narrow(ptnt_mm.get_config(name), arch)
    config.model.backbone.drop_path_rate = 0.0
    if 'rcnn' in (config.model.get('test_cfg') or {}):
        # None of 80 classes is likely.
        config.model.test_cfg.rcnn.score_thr = 0.001
        heads = config.model.roi_head.get('mask_head') or []
        for head in heads if isinstance(heads, list) else [heads]:
            head.conv_out_channels = 16  # more would take most of a prediction
    if name.startswith('rtmdet'):
        # Of more than 10 000 boxes, mmdet suppresses those of each class separately.
        config.model.bbox_head.num_classes = 16
    if name.startswith('upernet'):
        config.model.decode_head.in_channels = list(arch['outer_dims'])
        config.model.auxiliary_head.in_channels = arch['outer_dims'][2]
    return config


def host_config(name: str, first: int = 0, levels: int = 5) -> Config:
    """A config of mmdet, of three classes, the smallest backbone, and some of its five levels.

    A graph contains the head once for each level.
    """
    config = config_from_file(Path(mmdet.__file__).parent / '.mim' / 'configs' / f'{name}.py')
    model = config.model
    model.backbone = dict(type='FourConvolutions', width=16)
    head = model.get('bbox_head') or model.mask_head
    owner = head if 'strides' in head else head.anchor_generator
    owner.strides = owner.strides[first : first + levels]
    model.neck = dict(
        type='FPN',
        in_channels=[16] * 4,
        out_channels=16,
        start_level=1 + first,
        end_level=min(first + levels, 3),
        add_extra_convs='on_output',
        num_outs=len(owner.strides),
    )
    head.update(
        num_classes=3,
        in_channels=16,
        feat_channels=16,
        stacked_convs=1,
        norm_cfg=dict(type='GN', num_groups=4),
    )
    if 'bbox_head' in model and 'mask_head' in model:
        model.mask_head.mask_feature_head.update(in_channels=16, feat_channels=16)
    return config


def decided_model(config: Config) -> nn.Module:
    torch.manual_seed(0)
    model = build_model(config).eval()
    for name, module in model.named_modules():
        if any(part in _LAST for part in name.split('.')) and hasattr(module, 'weight'):
            nn.init.normal_(module.weight, std=0.5)
            nn.init.zeros_(module.bias)
    return model


def quantised_operators(body: bytes) -> set[str]:
    """The kinds of nodes of an ONNX file that have an input of 8 bits."""
    import onnx

    nodes = onnx.load_from_string(body).graph.node
    made = {name: node.op_type for node in nodes for name in node.output}
    return {
        node.op_type
        for node in nodes
        if any(made.get(name) == 'DequantizeLinear' for name in node.input)
    }
