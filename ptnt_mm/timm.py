"""Register the networks of this package with timm: ``import ptnt_mm.timm``.

``timm.create_model('pyramid_tnt_s', features_only=True)`` then works as for timm's own. Parameters
keep their authors' names, and files of any source that :mod:`ptnt_mm.weights.names` knows load with
``pretrained_cfg_overlay=dict(file=...)``. timm has TNT itself, so only PyramidTNT and CPVT are new.

Nothing else imports this module: a plain install has no timm.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from timm.models._features import feature_take_indices
from torch import Tensor, nn

from ptnt_mm.models import cpvt, pyramid_tnt
from ptnt_mm.models.backbone import init_linear_, read_arch
from ptnt_mm.models.necks import TransposedConvNeck
from ptnt_mm.models.tokens import map_to_tokens, tokens_to_contiguous_map, tokens_to_map
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.fit import Needs, Trunk, compare, fit
from ptnt_mm.weights.names import Weights
from ptnt_mm.weights.published import FILES, Published, how_to_get


class _Classifier:
    """timm's interface of a classifier, for a backbone of the family; the first base class.

    A subclass names its first convolution, its repeated parts and its poolings, and gives its
    constructor's arguments timm's names.
    """

    pretrained_may_lack = ('norm', 'head')

    first_conv: str
    """The layer that takes the image."""

    layers: str
    """The list of stages or blocks."""

    pools: tuple[str, ...]
    """Values of ``global_pool``; '' keeps all tokens."""

    def _add_head(
        self,
        num_classes: int,
        in_chans: int,
        global_pool: str,
        drop_rate: float,
        device: Any,
        dtype: torch.dtype | None,
    ) -> None:
        """Complete the network at the end of a constructor."""
        self.num_features = self.head_hidden_size = self.feature_info[-1]['num_chs']
        self.num_prefix_tokens = self.class_tokens
        if in_chans != self.in_chans:
            self._take_channels(in_chans)
        if getattr(self, 'norm', None) is None:
            self.norm = nn.LayerNorm(self.num_features)
        self.head_drop = nn.Dropout(drop_rate)
        self.reset_classifier(num_classes, global_pool)
        self.to(device=device, dtype=dtype)

    def _take_channels(self, number: int) -> None:
        """Replace the first convolution by one for images of another number of channels."""
        self.in_chans = number
        parent, _, name = self.first_conv.rpartition('.')
        old = self.get_submodule(self.first_conv)
        new = nn.Conv2d(number, old.out_channels, old.kernel_size, old.stride, old.padding)
        setattr(self.get_submodule(parent), name, new.apply(self.init_layer))

    def forward_features(self, x: Tensor) -> Tensor:
        """(B, in_chans, H, W) -> the last layer's output after the norm, not pooled."""
        _, outer, hw = self.forward_tokens(x)[-1]
        return self._unpooled(self.norm(outer), hw)

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """The output of :meth:`forward_features` -> logits, or with ``pre_logits`` their input."""
        x = self.head_drop(self._pooled(x))
        return x if pre_logits else self.head(x)

    def forward(self, x: Tensor) -> Tensor:
        """(B, in_chans, H, W) -> logits (B, num_classes)."""
        return self.forward_head(self.forward_features(x))

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | Sequence[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = 'NCHW',
        intermediates_only: bool = False,
    ) -> list[Tensor] | tuple[Tensor, list[Tensor]]:
        """(B, in_chans, H, W) -> the outputs of stages or blocks.

        Args:
            x: Normalised images of any size.
            indices: Indices from 0, or how many of the last; None for all.
            return_prefix_tokens: Whether each comes with its class token (B, n, C), as a pair.
            norm: Apply the last norm to each; all must then have its width.
            stop_early: No effect: :meth:`prune_intermediate_layers` removes unused layers.
            output_fmt: 'NCHW', or 'NLC' for tokens.
            intermediates_only: Return only the list, otherwise also :meth:`forward_features`.

        Raises:
            ValueError: for another format, or if ``norm`` does not fit the widths.
        """
        if output_fmt not in ('NCHW', 'NLC'):
            raise ValueError(f"output_fmt is {output_fmt!r}: expected 'NCHW' or 'NLC'")
        outputs = self.forward_tokens(x)
        taken, _ = feature_take_indices(len(outputs), indices)
        n = self.class_tokens
        found = []
        for i in taken:
            _, outer, hw = outputs[i]
            if norm and outer.shape[2] != self.num_features:
                raise ValueError(
                    f'norm=True: output {i} has {outer.shape[2]} channels, the norm '
                    f'{self.num_features}: choose later indices'
                )
            outer = self.norm(outer) if norm else outer
            tokens = outer[:, n:]
            level = tokens_to_contiguous_map(tokens, hw) if output_fmt == 'NCHW' else tokens
            found.append((level, outer[:, :n]) if return_prefix_tokens and n else level)
        if intermediates_only:
            return found
        _, outer, hw = outputs[-1]
        return self._unpooled(self.norm(outer), hw), found

    def prune_intermediate_layers(
        self,
        indices: int | Sequence[int] = 1,
        prune_norm: bool = False,
        prune_head: bool = True,
    ) -> list[int]:
        """Remove the layers after the last of ``indices``, and return these, counted from 0."""
        taken, last = feature_take_indices(len(getattr(self, self.layers)), indices)
        self._keep_layers(last + 1)
        if prune_norm:
            self.norm = nn.Identity()
        if prune_head:
            self.reset_classifier(0, '')
        return taken

    def get_classifier(self) -> nn.Module:
        """The last layer; an identity if there is none."""
        return self.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """Replace the last layer by a new one.

        Args:
            num_classes: Length of the logits; 0 for no layer.
            global_pool: See the constructor; None keeps the present one.

        Raises:
            ValueError: for an unknown pooling.
        """
        if global_pool is not None:
            if global_pool not in self.pools:
                expected = ', '.join(map(repr, self.pools))
                raise ValueError(f'global_pool is {global_pool!r}: expected {expected}')
            self.global_pool = global_pool
        self.num_classes = num_classes
        head = nn.Linear(self.num_features, num_classes) if num_classes else nn.Identity()
        like = next(self.parameters())
        self.head = head.apply(init_linear_).to(like.device, like.dtype).train(self.training)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute blocks in the backward pass."""
        for part in self._with_blocks():
            part.with_cp = enable

    def group_matcher(self, coarse: bool = False) -> Callable[[str], int]:
        """A function from a parameter's name to the depth of its layer.

        Args:
            coarse: Count stages instead of blocks.
        """
        return self._stage_of if coarse else self._depth_of

    def _depth_of(self, name: str) -> int:
        if name.startswith(('head', 'neck')):
            name = 'norm'
        return self.get_layer_depth(name)[0]

    def _stage_of(self, name: str) -> int:
        return self._depth_of(name)

    def _normed(self, i: int, outer: Tensor) -> Tensor:
        """Outputs are normalised by the methods above, where timm expects it."""
        return outer


class PyramidTNT(_Classifier, pyramid_tnt.PyramidTNT):
    """PyramidTNT as a classifier of timm.

    Args:
        arch: See :class:`ptnt_mm.models.PyramidTNT`.
        num_classes: Length of the logits; 0 for no last layer.
        in_chans: Channels of the images.
        img_size: Side in pixels, a multiple of 64, that the position tables belong to; images may
            have any size. The arch's own by default.
        global_pool: 'avg', or '' to return maps.
        drop_rate: Dropout before the last layer.
        proj_drop_rate: Dropout of MLPs, of the attention's projection and of the sentence table.
        attn_drop_rate: Dropout of attention weights.
        drop_path_rate: Rate of dropping a residual branch in the last block.
        device: Of the parameters.
        dtype: Of the parameters.
    """

    first_conv = 'patch_embed.common_conv.0'
    layers = 'stages'
    pools = ('avg', '')
    output_fmt = 'NCHW'

    def __init__(
        self,
        arch: str | dict,
        num_classes: int = 1000,
        in_chans: int = 3,
        img_size: int | tuple[int, int] | None = None,
        global_pool: str = 'avg',
        drop_rate: float = 0.0,
        proj_drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__(
            arch,
            pretrain_img_size=_side(img_size),
            drop_rate=proj_drop_rate,
            attn_drop_rate=attn_drop_rate,
            drop_path_rate=drop_path_rate,
        )
        self._add_head(num_classes, in_chans, global_pool, drop_rate, device, dtype)

    def _unpooled(self, outer: Tensor, hw: tuple[int, int]) -> Tensor:
        return tokens_to_contiguous_map(outer, hw)

    def _pooled(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3)) if self.global_pool else x

    def _with_blocks(self) -> Sequence[nn.Module]:
        return self.stages

    def _keep_layers(self, number: int) -> None:
        self.stages = self.stages[:number]
        self.word_merges = self.word_merges[: number - 1]
        self.sentence_merges = self.sentence_merges[: number - 1]

    def _stage_of(self, name: str) -> int:
        kind, index, *_ = f'{name}.'.split('.')
        if kind == 'stages':
            return int(index) + 1
        if kind in ('word_merges', 'sentence_merges'):  # of the stage after them
            return int(index) + 2
        return len(self.stages) + 1 if kind in ('norm', 'head', 'neck') else 0


class PyramidTNTFPN(PyramidTNT):
    """PyramidTNT with a neck that halves the strides to 4, 8, 16 and 32, for ``features_only``.

    The neck starts from random initialisation, unless the file has its weights.

    Args:
        arch: See :class:`PyramidTNT`, for the other arguments too.
    """

    pretrained_may_lack = (*PyramidTNT.pretrained_may_lack, 'neck')

    def _add_head(self, *args: Any) -> None:
        for info in self.feature_info:
            info['reduction'] //= 2
        self.neck = TransposedConvNeck([info['num_chs'] for info in self.feature_info])
        self.neck.apply(self.init_layer)
        super()._add_head(*args)

    def forward_tokens(self, image: Tensor) -> list[tuple[None, Tensor, tuple[int, int]]]:
        """(B, in_chans, H, W) -> per stage: None, the neck's map as tokens (B, N, C), its hw."""
        outputs = super().forward_tokens(image)
        maps = self.neck([tokens_to_map(outer, hw) for _, outer, hw in outputs])
        return [(None, map_to_tokens(level), level.shape[2:]) for level in maps]

    def _keep_layers(self, number: int) -> None:
        super()._keep_layers(number)
        self.neck.in_channels = self.neck.out_channels = self.neck.in_channels[:number]
        self.neck.upsamplers = self.neck.upsamplers[:number]


class CPVT(_Classifier, cpvt.CPVT):
    """CPVT as a classifier of timm.

    Args:
        arch: See :class:`ptnt_mm.models.CPVT`.
        num_classes: Length of the logits; 0 for no last layer.
        in_chans: Channels of the images.
        img_size: No effect: the network has no tables, and takes images of any size.
        global_pool: 'token' for the class token, 'avg' for the mean of the others, or '' to return
            all tokens.
        drop_rate: Dropout before the last layer.
        proj_drop_rate: Dropout of MLPs, of the attention's projection and of the tokens.
        attn_drop_rate: Dropout of attention weights.
        drop_path_rate: Rate of dropping a residual branch in the last block.
        device: Of the parameters.
        dtype: Of the parameters.
    """

    first_conv = 'patch_embed.proj'
    layers = 'blocks'
    pools = ('token', 'avg', '')
    output_fmt = 'NLC'

    def __init__(
        self,
        arch: str | dict,
        num_classes: int = 1000,
        in_chans: int = 3,
        img_size: int | tuple[int, int] | None = None,
        global_pool: str = 'token',
        drop_rate: float = 0.0,
        proj_drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__(
            arch,
            out_indices=range(read_arch(arch, self.archs)['depth']),
            drop_rate=proj_drop_rate,
            attn_drop_rate=attn_drop_rate,
            drop_path_rate=drop_path_rate,
        )
        self._add_head(num_classes, in_chans, global_pool, drop_rate, device, dtype)

    def _unpooled(self, outer: Tensor, hw: tuple[int, int]) -> Tensor:
        return outer

    def _pooled(self, x: Tensor) -> Tensor:
        if self.global_pool == 'avg':
            return x[:, self.class_tokens :].mean(dim=1)
        return x[:, 0] if self.global_pool else x

    def _with_blocks(self) -> Sequence[nn.Module]:
        return (self,)

    def _keep_layers(self, number: int) -> None:
        self.blocks = self.blocks[:number]


def _side(img_size: int | Sequence[int] | None) -> int | None:
    """The side of square images; raise a ValueError for others."""
    if img_size is None or isinstance(img_size, int):
        return img_size
    if len(set(img_size)) != 1:
        raise ValueError(
            f'img_size is {tuple(img_size)}: position tables are square. Omit it, or pass one '
            'side; images may have any size'
        )
    return img_size[0]


class _OfColour(Trunk):
    """A file for images of three channels: timm converts its first layer for others."""

    def needs(self, model: nn.Module) -> Needs:
        needs = super().needs(model)
        first = f'{model.first_conv}.weight'
        return needs._replace(
            own=needs.own | {first: needs.own[first][:, :1].expand(-1, 3, -1, -1)}
        )


def _our_names(weights: Mapping[str, Tensor], model: nn.Module) -> Weights:
    """The weights of a file by the model's names, with position tables of the model's size.

    A neck that is not in the file keeps its own.

    Raises:
        CheckpointError: as :func:`ptnt_mm.weights.fit.fit`; timm accepts files of other networks.
    """
    source = str(model.pretrained_cfg.get('file') or 'the checkpoint')
    differing = compare(weights, model, Trunk(), source).report.mismatched
    scope = _OfColour() if f'{model.first_conv}.weight' in differing else Trunk()
    neck = {key: own for key, own in model.state_dict().items() if key.startswith('neck.')}
    return neck | fit(weights, model, scope, source).ready


def _cfg(network: type[_Classifier], size: int, pool_size: tuple[int, int] | None) -> dict:
    return dict(
        num_classes=1000,
        input_size=(3, size, size),
        pool_size=pool_size,
        crop_pct=0.9,
        interpolation='bicubic',
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        first_conv=network.first_conv,
        classifier='head',
        license='apache-2.0',
    )


def _register(name: str, network: type[_Classifier], arch: str, layers: int) -> None:
    """Register a variant with timm, which calls the function that is made here."""

    def build(pretrained: bool = False, **kwargs: Any) -> nn.Module:
        if pretrained and not any(map(kwargs.get, ('pretrained_cfg', 'pretrained_cfg_overlay'))):
            files = (FILES.get(f'{cls.__name__} {arch}', ()) for cls in network.__mro__)
            file = next(chain.from_iterable(files), Published('', 0))
            why = how_to_get(file, name)
            if file.address:
                why = f'timm cannot download weights of {name}: `ptnt weights` has their address'
            raise UserError(f'{why}. To load a file: pretrained_cfg_overlay=dict(file=...)')
        way = kwargs.get('feature_cls', 'getter')
        if isinstance(way, str) and way != 'getter':  # hooks would return the words
            raise UserError(f"feature_cls={way!r}: {name} has only 'getter', which is the default")
        return build_model_with_cfg(
            network,
            name,
            pretrained,
            pretrained_filter_fn=_our_names,
            feature_cfg=dict(out_indices=tuple(range(layers)), feature_cls='getter'),
            arch=arch,
            **kwargs,
        )

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f'{network.__name__}, arch {arch!r}, for ``timm.create_model({name!r})``.'
    globals()[name] = register_model(build)


_pyramids = {f'pyramid_tnt_{row["alias"]}': arch for arch, row in pyramid_tnt.ARCHS.items()}
_cpvts = {f'cpvt_{row["alias"]}': arch for arch, row in cpvt.CPVT_ARCHS.items()}

default_cfgs = generate_default_cfgs(
    {
        f'{name}{end}': _cfg(network, size, (size // stride,) * 2)
        for end, network, stride in (('', PyramidTNT, 64), ('_fpn', PyramidTNTFPN, 32))
        for name, arch in _pyramids.items()
        for size in [pyramid_tnt.ARCHS[arch]['pretrain_img_size']]
    }
    | {name: _cfg(CPVT, 224, None) for name in _cpvts}
)
"""timm's description of each variant, by name; no weights can be downloaded."""

for _name, _arch in _pyramids.items():
    _register(_name, PyramidTNT, _arch, pyramid_tnt.NUM_STAGES)
    _register(f'{_name}_fpn', PyramidTNTFPN, _arch, pyramid_tnt.NUM_STAGES)
for _name, _arch in _cpvts.items():
    _register(_name, CPVT, _arch, cpvt.CPVT_ARCHS[_arch]['depth'])
