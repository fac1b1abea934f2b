"""A contact sheet of a detector or a segmenter: ground truth next to predictions."""

import io
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke
from PIL import Image
from pycocotools.coco import COCO

from ptnt_mm.drawing.figures import FAINT, Colour, colour, save_figure
from ptnt_mm.utils.errors import UserError

_PAIRS_PER_ROW = 2
_CELL_INCHES = (2.9, 2.25)
_HEAD_INCHES = 0.9
_MAP_OPACITY, _MASK_OPACITY = 0.6, 0.45


class Pair(NamedTuple):
    """A picture that is shown twice: with its ground truth and with its predictions."""

    file: Path
    truth: Any
    found: Any
    heading: str = 'predictions'


# ---- A detector


def draw_detections(
    annotation_file: Path,
    image_folder: Path,
    results_file: Path,
    out_file: Path,
    score_thr: float = 0.4,
    num_images: int = 10,
) -> Path:
    """Draw boxes, and masks if there are any, over pictures spread evenly over a data set.

    Args:
        annotation_file: COCO detection annotations.
        image_folder: The folder that each `file_name` in the annotations is relative to.
        results_file: COCO results, as mmdet's CocoMetric writes them to
            `<outfile_prefix>.bbox.json`. Masks are drawn if every entry also has a
            `segmentation`, as in `.segm.json`.
        out_file: The figure, a PNG; it is returned.
        score_thr: Predictions with lower scores are not drawn.
        num_images: The largest number of pictures to show.

    Raises:
        UserError: if the results belong to other annotations, or there is nothing to draw.
    """
    with redirect_stdout(io.StringIO()):  # pycocotools prints its progress
        coco = COCO(annotation_file)
    found = json.loads(results_file.read_text(encoding='utf-8'))
    if strangers := {entry['image_id'] for entry in found} - coco.imgs.keys():
        raise UserError(
            f'{results_file} belongs to other annotations: they have no image {min(strangers)}'
        )
    masks = all('segmentation' in entry for entry in found)
    results = defaultdict(list)
    for entry in sorted(found, key=itemgetter('score')):  # the highest score on top
        if entry['score'] >= score_thr:
            results[entry['image_id']].append(entry)
    tones = {category: colour(index) for index, category in enumerate(sorted(coco.cats))}
    pairs, shown = [], set()
    for number in _spread(sorted(coco.imgs), num_images):
        picture = image_folder / coco.imgs[number]['file_name']
        pairs.append(Pair(picture, coco.imgToAnns[number], results[number]))
        shown |= {entry['category_id'] for entry in pairs[-1].truth + pairs[-1].found}
    legend = {coco.cats[category]['name']: tones[category] for category in sorted(shown)}
    title = f'Ground truth next to predictions with a score of {score_thr:.2f} or more'
    draw = partial(_draw_objects, coco=coco, tones=tones, masks=masks)
    return _draw_sheet(pairs, draw, title, legend, out_file)


def _draw_objects(
    axes: Axes, entries: list[dict], coco: COCO, tones: Mapping[int, Colour], masks: bool
) -> None:
    """Draw boxes, masks and scores in their class colours."""
    for entry in entries:
        x, y, width, height = entry['bbox']
        tone = tones[entry['category_id']]
        # Annotations measure from a pixel's edge, imshow from its centre.
        box = Rectangle(
            (x - 0.5, y - 0.5), width, height, fill=False, edgecolor=tone, linewidth=1.5
        )
        box.set_path_effects([Stroke(linewidth=3, foreground='white', alpha=0.85), Normal()])
        axes.add_patch(box)
        if masks and 'segmentation' in entry:
            elsewhere = 1 - coco.annToMask(entry)  # the object's pixels have the index 0
            _tint(axes, elsewhere, np.array([tone]), _MASK_OPACITY)
        if 'score' in entry:
            name = coco.cats[entry['category_id']]['name']
            _draw_label(axes, entry['bbox'], f'{name} {entry["score"]:.2f}', tone)


def _draw_label(axes: Axes, box: list[float], text: str, tone: Colour) -> None:
    """Write class and score at the top left corner of a box, inside the picture."""
    x, y, width, _ = box
    right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
    above = y > 0.08 * bottom
    # Near the right border the text would not fit, so it is aligned with the box's right side.
    leftwards = x > 0.75 * right
    axes.text(
        min(x + width, right) if leftwards else max(x, 0),
        y - 1 if above else max(y, 0) + 1,
        text,
        fontsize=6,
        color='black',
        horizontalalignment='right' if leftwards else 'left',
        verticalalignment='bottom' if above else 'top',
        bbox=dict(boxstyle='square,pad=0.12', facecolor=tone, edgecolor='white', linewidth=0.4),
        clip_on=True,
    )


# ---- A segmenter


def draw_maps(
    image_folder: Path,
    truth_folder: Path,
    results_folder: Path,
    colours: Mapping[str, Colour],
    out_file: Path,
    num_images: int = 10,
) -> Path:
    """Draw class maps over pictures spread evenly over a data set.

    Args:
        image_folder: The pictures, JPEGs with the names of their maps.
        truth_folder: Ground truth maps: PNGs whose pixels are class indices.
        results_folder: Predicted maps, as mmseg's IoUMetric writes them to ``output_dir``.
        colours: Class colours by name, in index order. Pixels with another index, such as 255, are
            not drawn and do not count.
        out_file: The figure, a PNG; it is returned.
        num_images: The largest number of pictures to show.

    Raises:
        UserError: if there is nothing to draw.
    """
    pairs = []
    for path in _spread(sorted(results_folder.glob('*.png')), num_images):
        truth, found = (np.asarray(Image.open(f / path.name)) for f in (truth_folder, path.parent))
        right = (truth == found)[truth < len(colours)].mean()
        heading = f'predictions   {100 * right:.1f} %'
        pairs.append(Pair(image_folder / f'{path.stem}.jpg', truth, found, heading))
    title = 'Ground truth next to predictions, with the share of correct pixels'
    draw = partial(_tint, tones=np.array(list(colours.values())), opacity=_MAP_OPACITY)
    return _draw_sheet(pairs, draw, title, colours, out_file)


# ---- Both


def _tint(axes: Axes, indices: np.ndarray, tones: np.ndarray, opacity: float) -> None:
    """Tint each pixel in the colour of its index, (H, W); indices without a colour stay clear."""
    known = indices < len(tones)
    layer = np.zeros((*indices.shape, 4))
    layer[known] = np.insert(tones, 3, opacity, axis=1)[indices[known]]
    axes.imshow(layer, interpolation='nearest')


def _spread(pictures: Sequence[Any], num_images: int) -> list[Any]:
    """Choose ``num_images`` pictures, evenly spaced, or all if there are not more."""
    places = np.linspace(0, len(pictures) - 1, min(num_images, len(pictures)))
    return [pictures[place] for place in places.astype(int)]


def _draw_sheet(
    pairs: Sequence[Pair],
    draw: Callable[[Axes, Any], None],
    title: str,
    legend: Mapping[str, Colour],
    out_file: Path,
) -> Path:
    """Draw pairs of pictures, with a title and a legend of class colours above them."""
    if not pairs:
        raise UserError(f'{out_file}: there is nothing to draw')
    across = min(_PAIRS_PER_ROW, len(pairs))
    rows = -(-len(pairs) // across)
    size = 2 * across * _CELL_INCHES[0], rows * _CELL_INCHES[1] + _HEAD_INCHES
    figure = Figure(figsize=size, layout='constrained')
    figure.legend(
        handles=[Patch(color=tone, label=name) for name, tone in legend.items()],
        title=title,
        title_fontproperties=dict(size=12, weight='bold'),
        loc='outside upper left',
        alignment='left',
        ncols=10,
        frameon=False,
        fontsize=9,
    )
    cells = figure.subplots(rows, 2 * across, squeeze=False).reshape(-1, 2)
    for pair, (truth, found) in zip(pairs, cells, strict=False):
        with Image.open(pair.file) as image:
            pixels = np.asarray(image.convert('RGB'))
        for axes, heading, content in (
            (truth, f'{pair.file.name}   ground truth', pair.truth),
            (found, pair.heading, pair.found),
        ):
            axes.imshow(pixels, interpolation='lanczos')
            axes.set_title(heading, fontsize=7.5, color=FAINT, pad=2.5, loc='left')
            axes.set_axis_off()
            draw(axes, content)
    for axes in cells[len(pairs) :].flat:
        axes.remove()
    return save_figure(figure, out_file)
