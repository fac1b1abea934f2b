"""Compare the results of an exported network with the host's; boxes are matched one to one."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import torch
from mmengine.structures import BaseDataElement
from torch import Tensor

from ptnt_mm.deploy.pixels import full_mask, prepared
from ptnt_mm.deploy.resizing import Resizing
from ptnt_mm.deploy.runtimes import Run
from ptnt_mm.utils.console import fitted
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.export.end_to_end import EndToEndModel

TOLERANCE = 1e-3
"""Tolerance for boxes in image sides, for scores, and for the share of different pixels."""

_TRIES = 20  # noisy images to look for ties in; each of them decides a tie anew

Boxes = dict[str, np.ndarray]
"""Boxes (n, 4) in pixels, scores (n,), labels (n,), and masks if there are any, by name."""


@dataclass
class Differences:
    """The largest differences of one image; a missing kind was not compared.

    The kinds are 'boxes' in image sides, 'scores', 'masks' and 'labels' in shares of pixels, and
    'maps' in shares of the largest value.
    """

    size: tuple[int, int]  # the image's height and width
    largest: dict[str, float] = field(default_factory=dict)  # by kind
    matched: int = 0  # boxes
    unmatched: int = 0  # boxes on one side only, without the ties
    ties: int = 0  # boxes on one side only because of rounding

    def note(self, kind: str, difference: np.ndarray | float) -> None:
        """Keep the largest difference of a kind."""
        largest = np.abs(difference).max(initial=0.0)
        # Python's max would drop a NaN.
        self.largest[kind] = float(np.maximum(self.largest.get(kind, 0.0), largest))

    def within(self, tolerance: float) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return not self.unmatched and all(v <= tolerance for v in self.largest.values())

    def __str__(self) -> str:
        """A summary in one line."""
        size, boxes = f'{self.size[0]}x{self.size[1]}', ''
        if 'boxes' in self.largest:
            if not self.matched + self.unmatched + self.ties:
                return f'{size}: no boxes to compare'
            ties = f', {self.ties} tied' if self.ties else ''
            boxes = f'{counted(self.matched, "box")} matched, {self.unmatched} not{ties}; '
        found = ', '.join(f'{kind} {value:.1e}' for kind, value in self.largest.items())
        return f'{size}: {boxes}largest differences: {found}'


@torch.no_grad()
def compare(
    run: Run, network: EndToEndModel, inputs: dict[str, np.ndarray], tolerance: float = TOLERANCE
) -> Differences:
    """Compare an exported network with its original on the inputs for one image."""
    size = tuple(inputs['sizes'][0].tolist())
    found = {name: values[0] for name, values in run(inputs).items()}
    normalised = network.normalised(*map(torch.from_numpy, inputs.values()))
    differences = Differences(size)
    if network.task == 'features':
        for name, map_ in zip(network.outputs, network.model.extract_feat(normalised), strict=True):
            largest = map_.abs().max().item() or 1.0
            differences.note('maps', (found[name] - map_[0].numpy()) / largest)
    elif network.task == 'segmentation':
        labels = _predicted(network, normalised, size).pred_sem_seg.data[0].numpy()
        differences.note('labels', (found['labels'][: size[0], : size[1]] != labels).mean())
    elif network.task == 'classification':
        scores = network.model.predict(normalised)[0].pred_score.numpy()
        differences.note('scores', found['scores'] - scores)
    else:
        is_box = found['labels'] >= 0
        found = {name: values[is_box] for name, values in found.items()}
        expected = _boxes(network, normalised, size)
        pairs = _pairs(found, expected, max(size))
        _compare_pairs(differences, found, expected, pairs, network)
        random = torch.Generator().manual_seed(0)
        noise = (torch.randn(normalised.shape, generator=random) for _ in range(_TRIES))
        noisy = (_boxes(network, normalised + tolerance / 10 * shift, size) for shift in noise)
        _count_boxes(differences, found, expected, pairs, noisy)
    return differences


def _predicted(network: EndToEndModel, image: Tensor, size: tuple[int, int]) -> BaseDataElement:
    """The host's predictions for a normalised image (1, 3, H, W)."""
    height, width = image.shape[2:]
    meta = dict(
        img_shape=size,
        ori_shape=size,
        pad_shape=(height, width),
        batch_input_shape=(height, width),
        scale_factor=(1.0, 1.0),
        img_padding_size=(0, width - size[1], 0, height - size[0]),
    )
    return network.model.predict(image, [BaseDataElement(metainfo=meta)])[0].cpu()


def _boxes(network: EndToEndModel, image: Tensor, size: tuple[int, int]) -> Boxes:
    """The host's boxes in a normalised image (1, 3, H, W)."""
    found = _predicted(network, image, size).pred_instances
    names = dict(boxes='bboxes', scores='scores', labels='labels', masks='masks')
    return {name: found[key].numpy() for name, key in names.items() if key in found}


def _compare_pairs(
    differences: Differences,
    found: Boxes,
    expected: Boxes,
    pairs: list[tuple[int, int]],
    network: EndToEndModel,
) -> None:
    """Note the differences of paired boxes, and of their masks if there are any."""
    size, threshold, grid = differences.size, network.thresholds.get('mask'), network.mask_grid
    differences.largest.update(boxes=0.0, scores=0.0)
    for i, j in pairs:
        differences.note('boxes', (found['boxes'][i] - expected['boxes'][j]) / max(size))
        differences.note('scores', found['scores'][i] - expected['scores'][j])
        if threshold is not None:
            mask = full_mask(found['masks'][i], found['boxes'][i], size, threshold, grid)
            differences.note('masks', (mask != expected['masks'][j]).mean())


def _count_boxes(
    differences: Differences,
    found: Boxes,
    expected: Boxes,
    pairs: list[tuple[int, int]],
    noisy: Iterator[Boxes],
) -> None:
    """Count the pairs, the ties and the other boxes without a partner.

    Rounding is like noise: it decides which of two equal boxes is kept. So a box is a tie if noise
    also makes the host find it, or lose it. The noise is far below a grey level; it moves scores by
    less than the tolerance, but by more than rounding does.
    """
    side = max(differences.size)
    mine = set(range(len(found['scores']))) - {i for i, _ in pairs}
    theirs = set(range(len(expected['scores']))) - {j for _, j in pairs}
    alone = len(mine) + len(theirs)
    while (mine or theirs) and (again := next(noisy, None)):
        # These choose last, so that a second copy of a box cannot take the partner of the first.
        mine -= {j for _, j in _pairs(again, found, side, mine)}
        theirs &= {j for _, j in _pairs(again, expected, side, theirs)}
    differences.matched, differences.unmatched = len(pairs), len(mine) + len(theirs)
    differences.ties = alone - differences.unmatched


def _pairs(
    one: Boxes, other: Boxes, side: int, last: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Pair the nearest boxes of each class, each at most once; return their indices in both.

    The ``other`` boxes choose, the first ones first, and those in ``last`` after the rest. Boxes
    farther apart than a hundredth of ``side``, the image's longer side, are not paired.
    """
    far = np.abs(one['boxes'][:, None] - other['boxes']).max(axis=2) / side
    # NaN matches nothing.
    far[(one['labels'][:, None] != other['labels']) | np.isnan(far)] = np.inf
    pairs = []
    for j in sorted(range(far.shape[1]), key=lambda j: j in last):
        if far[:, j].min(initial=np.inf) <= 0.01:
            i = far[:, j].argmin()
            pairs.append((i, j))
            far[i] = np.inf
    return pairs


def check_results(
    run: Run,
    network: EndToEndModel,
    images: Iterable[np.ndarray],
    shape: tuple[int, int],
    canvas: tuple[int, int] | None,
    tolerance: float,
) -> None:
    """Compare an exported network with its original at three sizes, and print the differences.

    Args:
        run: The exported network.
        network: The original.
        images: At least one image, (H, W, 3) uint8, RGB; repeated if there are fewer than sizes.
        shape: The largest height and width.
        canvas: The height and width of a file with a fixed size, or None; images are padded to it.
        tolerance: See :data:`TOLERANCE`.

    Raises:
        UserError: if the exported network refuses an image, or a difference exceeds the tolerance.
    """
    wrong, found = [], 0
    for image, (height, width) in zip(cycle(images), sizes_to_check(shape), strict=False):
        inputs, _ = prepared(image, Resizing([width, height], keep_ratio=False), canvas)
        try:
            differences = compare(run, network, inputs, tolerance)
        except UserError as error:
            if canvas is not None:
                raise
            advice = (
                f'Some networks, such as Swin, fix the size: try `size=({shape[0]}, {shape[1]})`'
            )
            raise UserError(f'{error}. {advice}') from error
        print(fitted(f'  {differences}', sys.stdout))
        found += differences.matched
        if not differences.within(tolerance):
            wrong.append(f'{height}x{width}')
    if network.task == 'detection' and not found:
        print(
            'NO BOXES: the model has no predictions for these images, so none were compared; try a '
            'lower score_thr in the config'
        )
    if wrong:
        raise UserError(
            f'the file differs from the model by more than {tolerance:g} at {", ".join(wrong)}: '
            'it is removed; report this with the lines above'
        )


def sizes_to_check(full: Sequence[int]) -> list[tuple[int, int]]:
    """Three sizes up to a full one: itself, an odd one, and a smaller one of a different shape."""
    height, width = full
    odd = tuple(min(max(side * 3 // 4, 32) | 1, side) for side in full)
    return [(height, width), odd, (height, min(max(width // 2, 32), width))]
