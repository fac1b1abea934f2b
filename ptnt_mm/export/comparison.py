"""Compare the results of an exported network with the host's; boxes are matched one to one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import torch
from mmengine.structures import BaseDataElement
from torch import Tensor

from ptnt_mm.deploy.pixels import paste, prepared
from ptnt_mm.deploy.runtimes import Run
from ptnt_mm.export.end_to_end import EndToEndModel
from ptnt_mm.utils.errors import UserError

TOLERANCE = 1e-3
"""Tolerance for boxes in image sides, for scores, and for the share of different pixels."""


@dataclass
class Differences:
    """The largest differences of one image; a missing kind was not compared.

    The kinds are 'boxes' in image sides, 'scores', 'masks' and 'labels' in shares of pixels, and
    'maps' in shares of the largest value.
    """

    size: tuple[int, int]  # the image's height and width
    largest: dict[str, float] = field(default_factory=dict)  # by kind
    matched: int = 0  # boxes
    unmatched: int = 0  # boxes on one side only, whose scores are not at the limit

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
        boxes = ''
        if 'boxes' in self.largest:
            boxes = f'{self.matched} boxes matched, {self.unmatched} not; '
        found = ', '.join(f'{kind} {value:.1e}' for kind, value in self.largest.items())
        return f'{self.size[0]}x{self.size[1]}: {boxes}largest differences: {found}'


@torch.no_grad()
def compare(run: Run, network: EndToEndModel, inputs: dict[str, np.ndarray]) -> Differences:
    """Compare an exported network with its original on the inputs for one image."""
    size = tuple(inputs['sizes'][0].tolist())
    found = {name: values[0] for name, values in run(inputs).items()}
    normalised = network.normalised(*map(torch.from_numpy, inputs.values()))
    differences = Differences(size)
    if network.task == 'features':
        for name, map_ in zip(network.outputs, network.model.extract_feat(normalised), strict=True):
            largest = map_.abs().max().item() or 1.0
            differences.note('maps', (found[name] - map_[0].numpy()) / largest)
        return differences
    sample = _predicted(network, normalised, size)
    if network.task == 'segmentation':
        wrong = found['labels'][: size[0], : size[1]] != sample.pred_sem_seg.data[0].numpy()
        differences.note('labels', wrong.mean())
    else:
        _compare_boxes(differences, found, sample.pred_instances, network.thresholds.get('mask'))
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


def _compare_boxes(
    differences: Differences,
    found: dict[str, np.ndarray],
    expected: BaseDataElement,
    threshold: float | None,
) -> None:
    """Pair the nearest boxes of each class, the host's best first, each at most once.

    Boxes farther apart than a hundredth of the image's side are not paired.
    """
    side = max(differences.size)
    is_box = found['labels'] >= 0
    found = {name: values[is_box] for name, values in found.items()}
    boxes, scores, labels = (expected[key].numpy() for key in ('bboxes', 'scores', 'labels'))
    far = np.abs(found['boxes'][:, None] - boxes).max(axis=2) / side
    # NaN matches nothing.
    far[(found['labels'][:, None] != labels) | np.isnan(far)] = np.inf
    pairs = []
    for j in range(len(boxes)):
        if far[:, j].min(initial=np.inf) <= 0.01:
            i = far[:, j].argmin()
            pairs.append((i, j))
            far[i] = np.inf
    mine, theirs = ({pair[place] for pair in pairs} for place in (0, 1))
    alone = [score for i, score in enumerate(found['scores']) if i not in mine]
    alone += [score for j, score in enumerate(scores) if j not in theirs]
    limit = min((*scores, *found['scores']), default=0)
    differences.matched = len(pairs)
    differences.unmatched = sum(score > limit + TOLERANCE for score in alone)
    differences.largest.update(boxes=0.0, scores=0.0)
    for i, j in pairs:
        differences.note('boxes', (found['boxes'][i] - boxes[j]) / side)
        differences.note('scores', found['scores'][i] - scores[j])
        if threshold is not None:
            mask = paste(found['masks'][i], found['boxes'][i], differences.size, threshold)
            differences.note('masks', (mask != expected.masks[j].numpy()).mean())


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
        UserError: if a difference exceeds the tolerance.
    """
    wrong, found = [], 0
    for image, (height, width) in zip(cycle(images), sizes_to_check(shape), strict=False):
        inputs, _ = prepared(image, [width, height], False, canvas)
        differences = compare(run, network, inputs)
        print(differences)
        found += differences.matched
        if not differences.within(tolerance):
            wrong.append(f'{height}x{width}')
    if network.task == 'detection' and not found:
        print(
            'NO BOXES: the model has no predictions for these images, so none were compared; try a '
            'lower score_thr in --cfg-options'
        )
    if wrong:
        raise UserError(
            f'the file differs from the model by more than {tolerance:g} at {", ".join(wrong)}: '
            'do not use it, and report it with the lines above'
        )


def sizes_to_check(full: Sequence[int]) -> list[tuple[int, int]]:
    """Three sizes up to a full one: itself, an odd one, and a smaller one of a different shape."""
    height, width = full
    odd = tuple(min(max(side * 3 // 4, 64) | 1, side) for side in full)
    return [(height, width), odd, (height, min(max(width // 2, 64), width))]
