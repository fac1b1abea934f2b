"""Models of configs: complete, and with a backbone that costs a thousandth."""

import copy
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, init_default_scope
from torch import nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models import PyramidTNT
from ptnt_mm.workbench.config.settings import dicts_within, type_name
from ptnt_mm.workbench.config.zoo import _with_bases, config_names, config_path


def _host(name: str) -> str:
    texts = ' '.join(file.read_text() for file in _with_bases(config_path(name)))
    others = (host for host in ('mmseg', 'mmpretrain', 'mmrotate') if f"'{host}::" in texts)
    return next(others, 'mmdet')


HOSTS = {name: _host(name) for name in config_names() if not name.startswith('pretrain_')}
"""The host of every config, by the files that it inherits; pretraining needs none."""

# mmrotate is for the forks alone.
if not find_spec('mmrotate'):
    HOSTS = {name: host for name, host in HOSTS.items() if host != 'mmrotate'}

SIZES = dict(ti='tiny', s='small', m='medium', b='base')

# Widths, and numbers of regions and queries, that only make a test slow.
_SMALL = dict(
    fc_out_channels=16,
    feedforward_channels=16,
    max_per_img=20,
    num=16,
    num_proposals=20,
    num_queries=20,
)
# The usual widths of necks and heads; those of position encodings are for each axis.
_WIDTHS = dict(
    in_channels=256, out_channels=256, feat_channels=256, conv_out_channels=256, embed_dims=256,
    proposal_feature_channel=256, num_feats=128,
)  # fmt: skip


def build(config: Config) -> nn.Module:
    """The model, with its host's registry."""
    init_default_scope(config.default_scope)
    return MODELS.build(copy.deepcopy(config.model))


def squeezed(model: nn.Module, divisor: int) -> list[tuple[torch.Size, torch.Size]]:
    """The sizes of maps that neck and head resize by other factors for rows than for columns.

    Args:
        model: On the device 'meta'.
        divisor: The number of pixels whose multiples images are padded to; odd ones are tried.
    """
    found, resize = [], F.interpolate

    def record(maps, *args, **kwargs):
        resized = resize(maps, *args, **kwargs)
        (h, w), (rows, columns) = maps.shape[2:], resized.shape[2:]
        # Pooled maps and the grids of SOLOv2 are square, whatever the size of the image.
        if rows * w != columns * h and h != w and rows != columns:
            found.append((maps.shape[2:], resized.shape[2:]))
        return resized

    # Others resize nothing, or need regions.
    names = dict(SOLOv2='mask_head', RTMDet='bbox_head', EncoderDecoder='decode_head')
    head = getattr(model, names.get(type(model).__name__, ''), nn.Identity())
    with torch.device('meta'), torch.no_grad():
        maps = model.eval().backbone(torch.zeros(1, 3, 7 * divisor, 11 * divisor))
        with mock.patch.object(F, 'interpolate', record):
            head(model.neck(maps) if model.with_neck else maps)
    return found


def necks(config: Config) -> list[ConfigDict]:
    """The settings of the neck, or of each neck in a sequence."""
    neck = config.model.neck
    return neck if isinstance(neck, list) else [neck] if neck else []


# Single-scale archs with all features of the published ones.
PLAIN = dict(
    TNT=dict(depth=2, outer_dim=16, inner_dim=4, outer_heads=2, inner_heads=1, words=16),
    CPVT=dict(depth=2, dim=16, heads=2),
)


def narrow(config: Config, pyramid: dict) -> Config:
    """The same config with a narrow backbone of random weights, and few regions and queries.

    Args:
        config: Any of our configs.
        pyramid: The arch of a PyramidTNT.
    """
    config = copy.deepcopy(config)
    backbone = config.model.backbone
    backbone.init_cfg = None
    config.model.data_preprocessor.pop('batch_augments', None)  # Mask2Former pads to 1024
    _make_small(config.model)
    cls = MODELS.get(backbone.type)
    if cls is not None and issubclass(cls, PyramidTNT):
        backbone.arch = pyramid
        if 'num_groups' in backbone.get('norm_cfg', {}):
            backbone.norm_cfg.num_groups = pyramid['inner_dims'][0]
        widths = [pyramid['outer_dims'][i] for i in backbone.get('out_indices', range(4))]
    elif type_name(backbone) in PLAIN:
        last = max(backbone.get('out_indices', (1,)))
        backbone.arch = dict(PLAIN[type_name(backbone)], depth=last + 1)
        widths = 16
    elif backbone.type == 'TimmFeatures':
        widths = [24, 40, 112, 320]
    else:
        backbone.depth = 18
        widths = [512]
    if HOSTS[Path(config.filename).stem] == 'mmpretrain':
        config.model.head.in_channels = widths[-1] if isinstance(widths, list) else widths
        return config
    if config.model.type == 'DETR':  # its last neck has a list, others a number
        for neck in necks(config):
            number = widths if isinstance(widths, int) else widths[0]
            neck.in_channels = [number] if neck.type == 'ChannelMapper' else number
        return config
    for neck in necks(config)[: 1 if isinstance(widths, int) else None]:
        neck.in_channels = widths
        if neck.type == 'FinerLevelNeck':
            if 'num_groups' in neck.get('norm_cfg', {}):
                neck.norm_cfg.num_groups = widths[0]
            widths = [widths[0], *widths]
    head = config.model.get('decode_head')
    if head and head.type == 'UPerHead':  # it has no neck
        head.update(in_channels=widths, channels=16)
        config.model.auxiliary_head.update(in_channels=widths[2], channels=16)
    return config


def _make_small(model: ConfigDict) -> None:
    """Set `_SMALL`, and quarter the usual widths: their 32 groups of channels still fit."""
    for _, settings in dicts_within(model, ''):
        settings.update({key: _SMALL[key] for key in _SMALL.keys() & settings.keys()})
        if settings.get('type') == 'ResampledMapsNeck':
            settings.setdefault('out_channels', 256)  # its default
        if model.type == 'DINO':  # the width of its encodings is fixed
            continue
        for key in _WIDTHS.keys() & settings.keys():
            if settings[key] == _WIDTHS[key]:
                settings[key] //= 4
            elif settings[key] == [256] * 4:
                settings[key] = [64] * 4
