"""Rename the weights of each source to our names.

Our names are those of PyramidTNT's authors. TNT's authors, timm and mmpretrain use others.
"""

import re
from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import Tensor

Weights = dict[str, Tensor]


def _from_timms_tnt(weights: Weights) -> Weights:
    """Rename timm's TNT to its authors' names; its word table is a map (1, c, side, side)."""
    ours = {'.'.join(_OF_TIMM.get(p, p) for p in key.split('.')): w for key, w in weights.items()}
    if 'inner_pos' in ours:
        ours['inner_pos'] = ours['inner_pos'].flatten(2).mT
    return ours


_OF_TIMM = {
    'patch_pos': 'outer_pos',
    'pixel_pos': 'inner_pos',
    'pixel_embed': 'patch_embed',
    'norm1_proj': 'proj_norm1',
    'norm2_proj': 'proj_norm2',
    'norm_in': 'inner_norm1',
    'attn_in': 'inner_attn',
    'norm_mlp_in': 'inner_norm2',
    'mlp_in': 'inner_mlp',
    'norm_out': 'outer_norm1',
    'attn_out': 'outer_attn',
    'norm_mlp': 'outer_norm2',
    'mlp': 'outer_mlp',
}
"""Map timm's names of the parts of a TNT to the authors'."""


_PARTS_OF_MMPRETRAIN = (
    (r'^layers\.(\d+)\.norm_proj\.', r'blocks.\1.proj_norm1.'),
    (r'^layers\.', 'blocks.'),
    (r'\.(inner|outer)_block\.norm_attn\.', r'.\1_norm1.'),
    (r'\.(inner|outer)_block\.norm_ffn\.', r'.\1_norm2.'),
    (r'\.(inner|outer)_block\.attn\.attn\.out_proj\.', r'.\1_attn.proj.'),
    (r'\.(inner|outer)_block\.attn\.attn\.', r'.\1_attn.'),
    (r'\.(inner|outer)_block\.ffn\.layers\.0\.0\.', r'.\1_mlp.fc1.'),
    (r'\.(inner|outer)_block\.ffn\.layers\.1\.', r'.\1_mlp.fc2.'),
    (r'\bprojection\.', 'proj.'),
)
"""Map mmpretrain's names of the parts of a TNT to the authors', where they differ from timm's."""


def _from_mmpretrains_tnt(weights: Weights) -> Weights:
    """Rename mmpretrain's TNT, and split its ``in_proj_weight`` (3C, C) into ``q`` and ``kv``."""
    ours = {}
    for key, weight in weights.items():
        for pattern, name in _PARTS_OF_MMPRETRAIN:
            key = re.sub(pattern, name, key)
        stem = key.removesuffix('in_proj_weight')
        if stem == key:
            ours[key] = weight
        else:
            width = weight.shape[0] // 3
            ours[f'{stem}q.weight'], ours[f'{stem}kv.weight'] = weight[:width], weight[width:]
    return ours


def _with_queries_apart(weights: Weights) -> Weights:
    """Convert a TNT's ``qk`` (2C, C) and ``v`` (C, C) to our ``q`` (C, C) and ``kv`` (2C, C)."""
    ours = dict(weights)
    for key in weights:
        values = key.replace('.qk.', '.v.')
        if '.qk.' in key and values in ours:
            queries, keys = ours.pop(key).chunk(2)
            ours[key.replace('.qk.', '.q.')] = queries
            ours[key.replace('.qk.', '.kv.')] = torch.cat([keys, ours.pop(values)])
    return ours


def _from_mindspore(weights: Weights) -> Weights:
    """Rename the weights of norms; all others in MindSpore's PyramidTNT have the authors' names.

    CFDT, a detector, leaves ``outer_pos`` unused: it trains a copy resized to its own images.
    """
    ours = {
        re.sub(r'\w+$', lambda m: _OF_MINDSPORE.get(m[0], m[0]), k): weights[k] for k in weights
    }
    if 'patch_pos_embed' in ours:
        ours['outer_pos'] = ours.pop('patch_pos_embed')
    return ours


_OF_MINDSPORE = dict(
    gamma='weight', beta='bias', moving_mean='running_mean', moving_variance='running_var'
)


def _from_efficientnet_pytorch(weights: Weights) -> Weights:
    """Rename the parts of an EfficientNet of any size, or of a lite one, to timm's names."""
    numbers = (int(found[1]) for found in map(_BLOCK_NUMBER.match, weights) if found)
    count = 1 + max(numbers, default=-1)
    # A trunk that was cut has the first blocks of the smallest network that has as many.
    depths = next((depths for depths in _OF_EFFICIENTNETS if sum(depths) >= count), (count,))
    blocks = [(stage, i) for stage, depth in enumerate(depths) for i in range(depth)]
    ours = {}
    for key, weight in weights.items():
        _, is_block, rest = key.rpartition('_blocks.')
        if is_block:
            number, part, name = rest.split('.', 2)
            stage, i = blocks[int(number)]
            parts = _OF_FIRST_BLOCK if stage == 0 else _OF_BLOCK
            ours[f'blocks.{stage}.{i}.{parts.get(part, part)}.{name}'] = weight
        else:
            part, _, name = key.partition('.')
            ours[f'{_AROUND_BLOCKS.get(part, part)}.{name}'] = weight
    return ours


_BLOCK_NUMBER = re.compile(r'_blocks\.(\d+)')

# The blocks of each stage, by their sum, which tells the networks apart: B0 to B7, and Lite1 to
# Lite4, which have a single block at both ends (arXiv 1905.11946; TensorFlow's code).
_OF_EFFICIENTNETS = (
    (1, 2, 2, 3, 3, 4, 1),
    (1, 3, 3, 4, 4, 5, 1),
    (2, 3, 3, 4, 4, 5, 2),
    (1, 3, 3, 5, 5, 6, 1),
    (2, 3, 3, 5, 5, 6, 2),
    (1, 4, 4, 6, 6, 8, 1),
    (2, 4, 4, 6, 6, 8, 2),
    (3, 5, 5, 7, 7, 9, 3),
    (3, 6, 6, 8, 8, 11, 3),
    (4, 7, 7, 10, 10, 13, 4),
)

_AROUND_BLOCKS = dict(
    _conv_stem='conv_stem', _bn0='bn1', _conv_head='conv_head', _bn1='bn2', _fc='classifier'
)
_OF_FIRST_BLOCK = dict(_depthwise_conv='conv_dw', _bn1='bn1', _project_conv='conv_pw', _bn2='bn2')
_OF_BLOCK = dict(
    _expand_conv='conv_pw',
    _bn0='bn1',
    _depthwise_conv='conv_dw',
    _bn1='bn2',
    _project_conv='conv_pwl',
    _bn2='bn3',
)


# One adapter for each source with other names: a test of its keys, and the function that renames
# its weights. Several may apply: mmpretrain has timm's names of the stem.
_ADAPTERS: dict[str, tuple[str, Callable[[Weights], Weights]]] = {
    "MindSpore's": (r'\.moving_mean$', _from_mindspore),  # others have a gamma, too
    "mmpretrain's": (r'_block\.attn\.attn\.in_proj', _from_mmpretrains_tnt),
    "timm's": (r'^pixel_', _from_timms_tnt),
    "the authors' of TNT": (r'_attn\.qk\.', _with_queries_apart),
    "efficientnet_pytorch's": (r'^_conv_stem\.', _from_efficientnet_pytorch),
}


def by_our_names(weights: Weights) -> Weights:
    """The weights of a backbone or a classifier by our names, from any source."""
    for pattern, rename in _ADAPTERS.values():
        if _has(weights, pattern):
            weights = rename(weights)
    return weights


def joined_name(name: str, roots: Collection[str]) -> str:
    """A weight's name with the first two parts as one where a network has that: 'stages_0.x'.

    timm joins the names of a Sequential and of its layers in networks that return maps.

    Args:
        name: Of a weight in a file, such as 'stages.0.x'.
        roots: First parts of the network's names.
    """
    first, *others = name.split('.')
    joined = '_'.join([first, *others[:1]])
    return '.'.join([joined, *others[1:]]) if first not in roots and joined in roots else name


def whose_names(weights: Weights) -> str:
    """Name the source of a backbone's weight names."""
    found = (source for source, (pattern, _) in _ADAPTERS.items() if _has(weights, pattern))
    return next(found, "ours, which are the authors' for PyramidTNT")


def _has(weights: Weights, pattern: str) -> bool:
    return any(re.search(pattern, key) for key in weights)


def as_classifier(weights: Weights, own: Collection[str]) -> Weights:
    """Rename the weights of a published classifier to mmpretrain's keys, ``own``."""
    # PyramidTNT has a norm for each of its outputs; the head takes that of the last.
    norms = [norm[0] for key in own if (norm := re.match(r'backbone\.norm\d*(?=\.)', key))]
    number = re.compile(r'\d*$')
    norm = max(norms, key=lambda name: int(number.search(name)[0] or 0), default='backbone.norm')
    parts = {'head': 'head.fc', 'norm': norm, 'backbone': 'backbone'}
    new = partial(re.sub, r'^\w+', lambda part: parts.get(part[0], f'backbone.{part[0]}'))
    return {new(key): weight for key, weight in by_our_names(weights).items()}
