"""A trial: words as the fine levels of a detector. docs/family.md says what came of it."""

from collections.abc import Sequence

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.layers.norm import MapNorm, build_norm
from ptnt_mm.models.layers.shapes import crop, words_to_map
from ptnt_mm.registry import MODELS


@MODELS.register_module()
class PyramidTNTWithWords(PyramidTNT):
    """PyramidTNT that returns words, too; its arguments and weights are PyramidTNT's."""

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> the maps of PyramidTNT, then of each its words (B, c_i, 4 h_i, 4 w_i)."""
        levels = self.forward_tokens(image)
        maps = (self._output(i, *levels[i][1:]) for i in self.out_indices)
        words = (words_to_map(levels[i][0], levels[i][2]) for i in self.out_indices)
        return *maps, *words


@MODELS.register_module()
class WordNeck(BaseModule):
    """TransposedConvNeck that adds each level's words, or puts them beside, when it is doubled.

    Args:
        in_channels: Channels of each map of sentences, finest first.
        word_channels: Channels of each map of words.
        form: 'add' or 'concat'.
        init_cfg: How MMEngine draws fresh weights.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        word_channels: Sequence[int],
        form: str,
        init_cfg: dict = dict(type='Kaiming', layer=['Conv2d', 'ConvTranspose2d']),  # noqa: B006
    ):
        super().__init__(init_cfg)
        self.levels = nn.ModuleList(
            _Level(dim, words, 4 * words if form == 'concat' else 0)
            for dim, words in zip(in_channels, word_channels, strict=True)
        )

    def forward(self, levels: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps (B, C_i, h, w), then words (B, c_i, 4 h, 4 w) -> (B, C_i, 2 h, 2 w), cropped."""
        maps, words = levels[: len(self.levels)], levels[len(self.levels) :]
        doubled = [level(*pair) for level, *pair in zip(self.levels, maps, words, strict=True)]
        sides = [finer.shape[2:] for finer in maps[:-1]]
        cropped = [crop(map_, hw) for map_, hw in zip(doubled[1:], sides, strict=True)]
        return tuple(level.contiguous() for level in (doubled[0], *cropped))


class _Level(nn.Module):
    """``beside``: channels of the words beside the sentences, or 0 to add them."""

    def __init__(self, dim: int, words: int, beside: int):
        super().__init__()
        self.beside = beside
        self.words = nn.Sequential(
            MapNorm(words),
            nn.Conv2d(words, beside or dim, 2, stride=2, bias=False),
            build_norm(dict(type='BN'), beside or dim),
        )
        self.up = nn.Sequential(
            nn.ConvTranspose2d(dim, dim, 2, stride=2, bias=False), build_norm(dict(type='BN'), dim)
        )
        self.smooth = nn.Sequential(
            nn.GELU(),
            nn.Conv2d(dim + beside, dim, 3, padding=1, bias=False),
            build_norm(dict(type='BN'), dim),
            nn.GELU(),
        )

    def forward(self, sentences: Tensor, words: Tensor) -> Tensor:
        """(B, C, h, w) and (B, c, 4 h, 4 w) -> (B, C, 2 h, 2 w)."""
        up, words = self.up(sentences), self.words(words)
        return self.smooth(torch.cat([up, words], dim=1) if self.beside else up + words)
