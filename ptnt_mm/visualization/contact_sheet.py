"""A contact sheet: the ground truth of some pictures beside what the detector found."""

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptnt_mm.errors import UserError
from ptnt_mm.visualization.figures import FAINT, INK, check_out_file, colour, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAIRS_PER_ROW = 2
_CELL_INCHES = (2.9, 2.25)
_HEAD_INCHES = 0.9


class _Sheet(NamedTuple):
    """What is drawn: pictures, and their annotations and results by image id."""

    images: list[dict[str, Any]]
    truths: dict[int, list[dict[str, Any]]]
    results: dict[int, list[dict[str, Any]]]
    names: dict[int, str]
    colours: dict[int, tuple[float, float, float]]


def draw_predictions(
    annotation_file: str | Path,
    image_folder: str | Path,
    results_file: str | Path,
    out_file: str | Path,
    score_thr: float = 0.4,
    num_images: int = 10,
) -> Path:
    """Draw the ground truth beside the predictions for pictures spread evenly over a data set.

    Args:
        annotation_file: COCO detection annotations.
        image_folder: The folder that their `file_name`s start from.
        results_file: COCO results, a list of `{image_id, category_id, bbox, score}`, as mmdet's
            CocoMetric writes them to `<outfile_prefix>.bbox.json`; masks are drawn if each has a
            `segmentation` too, as in `.segm.json`.
        out_file: The figure, .png or another format that Matplotlib writes.
        score_thr: Predictions of lower scores are left out.
        num_images: How many pictures are shown, if there are so many.

    Returns:
        The path of the figure.

    Raises:
        UserError: a file is missing, empty or not of its format, the results belong to other
            annotations, or the figure cannot be written.
    """
    out_file = Path(out_file)
    check_out_file(out_file)
    if num_images < 1:
        raise UserError(f'num_images is {num_images}; give 1 or more.')
    if not 0 <= score_thr <= 1:
        raise UserError(f'score_thr is {score_thr}; give a value from 0 to 1.')
    sheet = _read(Path(annotation_file), Path(results_file), score_thr)
    shown = sheet.images
    if num_images < len(shown):
        shown = [shown[i] for i in np.linspace(0, len(shown) - 1, num_images).astype(int)]
    return save(_figure(sheet._replace(images=shown), Path(image_folder), score_thr), out_file)


def _read(annotation_file: Path, results_file: Path, score_thr: float) -> _Sheet:
    coco = _load(annotation_file, 'annotation file')
    if not isinstance(coco, dict) or not all(
        coco.get(key) for key in ('images', 'annotations', 'categories')
    ):
        raise UserError(
            f'{annotation_file} holds no COCO annotations: it needs a dictionary with images, '
            'annotations and categories, none of them empty.'
        )
    names = {category['id']: category['name'] for category in coco['categories']}
    images = sorted(coco['images'], key=lambda image: image['id'])
    found = _load(results_file, 'results file')
    _check_results(found, results_file, {image['id'] for image in images}, names)
    truths = coco['annotations']
    if not all('segmentation' in one for one in found):
        truths = [{key: one[key] for key in one if key != 'segmentation'} for one in truths]
    return _Sheet(
        images=images,
        truths=_by_image(truths),
        results=_by_image([one for one in found if one['score'] >= score_thr]),
        names=names,
        colours={category: colour(index) for index, category in enumerate(sorted(names))},
    )


def _load(path: Path, what: str) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f'The {what} {path} cannot be read: {error.strerror}.') from error
    except ValueError as error:
        raise UserError(f'The {what} {path} is not JSON, or cut short: {error}.') from error


def _check_results(
    found: Any, results_file: Path, image_ids: set[int], names: dict[int, str]
) -> None:
    keys = {'image_id', 'category_id', 'bbox', 'score'}
    if not isinstance(found, list) or not all(
        isinstance(one, dict) and keys <= one.keys() for one in found
    ):
        raise UserError(
            f'{results_file} holds no COCO results: it needs a list of dictionaries with '
            f"{', '.join(sorted(keys))}, such as the .bbox.json that mmdet's CocoMetric writes."
        )
    for one in found:
        if one['image_id'] not in image_ids or one['category_id'] not in names:
            raise UserError(
                f'{results_file} belongs to other annotations: they know no picture '
                f'{one["image_id"]} or no category {one["category_id"]}.'
            )


def _by_image(entries: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        grouped[entry['image_id']].append(entry)
    return grouped


def _figure(sheet: _Sheet, image_folder: Path, score_thr: float) -> 'Figure':
    from matplotlib.figure import Figure

    pairs = min(_PAIRS_PER_ROW, len(sheet.images))
    rows = -(-len(sheet.images) // pairs)
    width, height = 2 * pairs * _CELL_INCHES[0], rows * _CELL_INCHES[1] + _HEAD_INCHES
    figure = Figure(figsize=(width, height))
    grid = figure.add_gridspec(
        rows,
        # A narrow empty column parts one pair from the next.
        3 * pairs - 1,
        width_ratios=([1, 1, 0.06] * pairs)[:-1],
        left=0.012,
        right=0.988,
        top=1 - (_HEAD_INCHES - 0.05) / height,
        bottom=0.1 / height,
        wspace=0.03,
        hspace=0.13,
    )
    for index, image in enumerate(sheet.images):
        row, pair = divmod(index, pairs)
        pixels = _pixels(image_folder / image['file_name'])
        truth = figure.add_subplot(grid[row, 3 * pair])
        _show(truth, pixels, f'{image["file_name"]}   ground truth')
        _draw_objects(truth, sheet.truths[image['id']], sheet)
        prediction = figure.add_subplot(grid[row, 3 * pair + 1])
        _show(prediction, pixels, 'predictions')
        _draw_objects(prediction, sheet.results[image['id']], sheet)
    _head(figure, sheet, height, score_thr)
    return figure


def _pixels(path: Path) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert('RGB'))
    except OSError as error:
        raise UserError(
            f'The picture {path} cannot be read: {error}. Give the folder that the file names of '
            'the annotations start from.'
        ) from error


def _show(axes: 'Axes', pixels: np.ndarray, title: str) -> None:
    axes.imshow(pixels, interpolation='lanczos')
    axes.set_axis_off()
    axes.set_title(title, fontsize=7.5, color=FAINT, pad=2.5, loc='left')


def _draw_objects(axes: 'Axes', entries: list[dict[str, Any]], sheet: _Sheet) -> None:
    """Draw boxes and masks in their classes' colours; a score is written, the best on top."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import Normal, Stroke

    for entry in sorted(entries, key=lambda entry: entry.get('score', 0)):
        x, y, width, height = entry['bbox']
        tone = sheet.colours[entry['category_id']]
        # Annotations count from a pixel's edge, imshow from its centre.
        box = Rectangle(
            (x - 0.5, y - 0.5), width, height, fill=False, edgecolor=tone, linewidth=1.5
        )
        box.set_path_effects([Stroke(linewidth=3, foreground='white', alpha=0.85), Normal()])
        axes.add_patch(box)
        if 'segmentation' in entry:
            _draw_mask(axes, entry['segmentation'], tone)
        if 'score' in entry:
            name = sheet.names[entry['category_id']]
            _label(axes, entry['bbox'], f'{name} {entry["score"]:.2f}', tone)


def _draw_mask(axes: 'Axes', segmentation: Any, tone: tuple[float, float, float]) -> None:
    """Tint the pixels of a mask: COCO's polygons, or its run lengths."""
    from pycocotools import mask as coco_mask

    height, width = axes.images[0].get_size()
    if isinstance(segmentation, list):
        segmentation = coco_mask.merge(coco_mask.frPyObjects(segmentation, height, width))
    tint = np.zeros((height, width, 4))
    tint[coco_mask.decode(segmentation).astype(bool)] = (*tone, 0.45)
    axes.imshow(tint, interpolation='nearest')


def _label(axes: 'Axes', box: list[float], text: str, tone: tuple[float, float, float]) -> None:
    """Write class and score on the top left corner of a box, inside the picture."""
    x, y, width, _ = box
    right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
    above = y > 0.08 * bottom
    # Near the right border there is no room for the text: it ends where the box ends.
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


def _head(figure: 'Figure', sheet: _Sheet, height: float, score_thr: float) -> None:
    """Write the title and the legend of the classes that occur on the sheet."""
    from matplotlib.patches import Patch

    figure.text(
        0.012,
        1 - 0.28 / height,
        f'Ground truth beside predictions with a score of {score_thr:.2f} or more',
        fontsize=12,
        color=INK,
        weight='bold',
        verticalalignment='center',
    )
    shown = {image['id'] for image in sheet.images}
    occurring = {
        entry['category_id']
        for group in (sheet.truths, sheet.results)
        for image_id in shown
        for entry in group[image_id]
    }
    handles = [
        Patch(color=sheet.colours[category], label=sheet.names[category])
        for category in sorted(occurring)
    ]
    figure.legend(
        handles=handles,
        loc='center left',
        bbox_to_anchor=(0.006, 1 - 0.56 / height),
        ncols=min(max(len(handles), 1), 10),
        frameon=False,
        fontsize=9,
        handlelength=1.1,
        handleheight=1.0,
        columnspacing=1.4,
    )
