"""An image in several networks: the chosen point or box, and the predictions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ptnt_mm.models.tokens import Grid
from ptnt_mm.utils.colours import as_hex, ink_on, palette_of
from ptnt_mm.utils.frames import one_line
from ptnt_mm.workbench.inference.predictor import Image, Predictor
from ptnt_mm.workbench.pages.page import class_map, outline
from ptnt_mm.workbench.pages.visualize.panels import Box
from ptnt_mm.workbench.pages.visualize.recording import BlockRecord, Recording, Size


class ChosenPlace(NamedTuple):
    """A point or a box of the image that the reader chose."""

    name: str
    box: Box  # a point has zero width and height
    given: bool = True  # False for the middle of the image

    @property
    def middle(self) -> tuple[float, float]:
        """The middle (x, y)."""
        x, y, width, height = self.box
        return x + width / 2, y + height / 2

    def covers(self, hw: Grid, cell: Size) -> np.ndarray:
        """The cells of a map (h, w) whose centres are inside; if none are, the middle one."""
        place = _place(self.middle, hw, cell)
        inside = []
        for n, size, first, length, at in zip(
            hw, cell, self.box[1::-1], self.box[:1:-1], place, strict=True
        ):
            middles = (np.arange(n) + 0.5) * size
            covered = (first <= middles) & (middles <= first + length)
            covered[at] |= not covered.any()
            inside.append(covered)
        return np.outer(*inside)


class RecordedScene(NamedTuple):
    """Recordings of an image, and the reader's choice."""

    recordings: dict[str, Recording]  # by what headings call them; '' for the only one
    choice: ChosenPlace
    channels: Sequence[int] = ()  # to show; if there are none, see `_some_channels`

    def sentence(self, block: BlockRecord) -> tuple[int, Box]:
        """The number of the sentence in the middle of the choice, and its place."""
        row, column = _place(self.choice.middle, block.hw, block.cell)
        height, width = block.cell
        return row * block.hw[1] + column, (column * width, row * height, width, height)

    def sentences(self, block: BlockRecord) -> tuple[np.ndarray, Box]:
        """The numbers of the sentences that the choice covers, and their place."""
        covered = self.choice.covers(block.hw, block.cell)
        rows, columns = (np.flatnonzero(covered.any(axis=axis)) for axis in (1, 0))
        height, width = block.cell
        place = columns[0] * width, rows[0] * height, len(columns) * width, len(rows) * height
        return np.flatnonzero(covered), place


def _place(point: tuple[float, float], hw: Grid, cell: Size) -> tuple[int, int]:
    """Row and column of the place of a map that covers a point (x, y)."""
    (x, y), (h, w), (height, width) = point, hw, cell
    return min(int(y / height), h - 1), min(int(x / width), w - 1)


_MOST_BOXES = 100
_MOST_COLOURS = 255  # colours of a map


class Prediction(NamedTuple):
    """Boxes, the best first, or classes, or why there is neither, as the template shows them."""

    # Each with label, score, box (x, y, width, height in pixels), colour, ink of letters on it, and
    # outline: of its mask, an SVG path.
    boxes: Sequence[dict[str, Any]] = ()
    # Each with label and share: a probability, or of the pixels of a map, and its colour there.
    classes: Sequence[dict[str, Any]] = ()
    map: str = ''  # classes of pixels as a data URL
    score_thr: float = 0.0
    note: str = ''


def predict(predictor: Predictor, task: str, image: Image) -> Prediction:
    """Run a model on a file, or an array (H, W, 3) uint8, BGR.

    A model that cannot predict is shown nevertheless, with the reason as a note.
    """
    try:
        sample = predictor.predict(image)
        return _PREDICTIONS[task](predictor, sample, predictor.describe(sample))
    except Exception as error:  # the post-processing of a host may raise anything
        return Prediction(note=f'The prediction failed: {one_line(error, named=True)}')


def _boxes(predictor: Predictor, sample: Any, described: dict) -> Prediction:
    instances = sample.pred_instances[:_MOST_BOXES]
    labels, masks = instances.labels.tolist(), instances.get('masks')
    colours = palette_of(predictor.dataset_meta, max(labels, default=0) + 1)
    boxes = []
    for i, (label, found) in enumerate(zip(labels, described['detections'], strict=False)):
        left, top, right, bottom = found['box']
        boxes.append(
            dict(
                label=found['label'],
                score=found['score'],
                box=(left, top, round(right - left, 2), round(bottom - top, 2)),
                outline=_outline(found) if masks is None else outline(masks[i].numpy()),
                colour=as_hex(colours[label]),
                ink=ink_on(colours[label]),
            )
        )
    return Prediction(boxes=boxes, score_thr=predictor.score_thr)


def _outline(found: dict) -> str:
    """The path of a rotated box; empty for an upright one."""
    corners = (f'{x} {y}' for x, y in found.get('corners', ()))
    path = ' L '.join(corners)
    return path and f'M {path} Z'


def _map(predictor: Predictor, sample: Any, described: dict) -> Prediction:
    labels = sample.pred_sem_seg.data[0].numpy()
    colours = palette_of(predictor.dataset_meta, int(labels.max()) + 1)[:_MOST_COLOURS]
    classes = []
    for segment in described['segments']:
        colour = as_hex(colours[segment['index'] % len(colours)])
        classes.append(dict(label=segment['label'], share=segment['share'], colour=colour))
    return Prediction(classes=classes, map=class_map(labels, colours))


def _classes(predictor: Predictor, sample: Any, described: dict) -> Prediction:
    found = described['classes']
    return Prediction(classes=[dict(label=c['label'], share=c['score']) for c in found])


_PREDICTIONS = {
    'detection': _boxes,
    'rotated detection': _boxes,
    'segmentation': _map,
    'classification': _classes,
}
