"""A backbone's maps described as timm does, for code written for timm."""

from collections.abc import Sequence


class FeatureInfo:
    """The stages or blocks of a backbone, with three methods of timm's class of this name.

    An index from 0 gives the dict of a stage or block, whether it is built or not: ``num_chs``, the
    channels; ``reduction``, the stride in pixels; ``module``, the name of the stage or block, which
    returns tokens and not the map; and ``index``.

    Args:
        container: Name of the module that contains the stages or blocks.
        channels: Of each stage or block.
        strides: Of each stage or block, in pixels.
        out_indices: The stages or blocks whose maps are returned, from 0.
    """

    def __init__(
        self,
        container: str,
        channels: Sequence[int],
        strides: Sequence[int],
        out_indices: Sequence[int],
    ):
        self.out_indices = tuple(out_indices)
        self.info = [
            dict(num_chs=width, reduction=stride, module=f'{container}.{index}', index=index)
            for index, (width, stride) in enumerate(zip(channels, strides, strict=True))
        ]

    def channels(self) -> list[int]:
        """Channels of each returned map."""
        return [self[index]['num_chs'] for index in self.out_indices]

    def reduction(self) -> list[int]:
        """Stride of each returned map, in pixels."""
        return [self[index]['reduction'] for index in self.out_indices]

    def module_name(self) -> list[str]:
        """Name of the stage or block of each returned map, such as 'stages.0'."""
        return [self[index]['module'] for index in self.out_indices]

    def __getitem__(self, index: int) -> dict:
        return self.info[index]
