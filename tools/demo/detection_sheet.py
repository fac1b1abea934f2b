"""A contact sheet of a detector: boxes and masks from COCO annotations and COCO results."""

import json
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from demo.contact_sheet import Colour, Pair, check_request, draw_sheet, spread
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.figures import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Sheet(NamedTuple):
    """Pictures, their annotations and results by image id, and the classes' names and colours."""

    images: list[dict[str, Any]]
    truths: dict[int, list[dict[str, Any]]]
    results: dict[int, list[dict[str, Any]]]
    names: dict[int, str]
    colours: dict[int, Colour]


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
        image_folder: The folder that each `file_name` in the annotations is relative to.
        results_file: COCO results, a list of `{image_id, category_id, bbox, score}`, as mmdet's
            CocoMetric writes them to `<outfile_prefix>.bbox.json`. Masks are drawn if every entry
            also has a `segmentation`, as in `.segm.json`.
        out_file: The figure, .png or another format that Matplotlib writes.
        score_thr: Predictions with lower scores are not drawn.
        num_images: The largest number of pictures to show.

    Returns:
        The path of the figure.

    Raises:
        UserError: if a file is missing, empty or not in its format, if the results belong to other
            annotations, or if the figure cannot be written.
    """
    out_file = Path(out_file)
    check_request(out_file, num_images)
    if not 0 <= score_thr <= 1:
        raise UserError(f'score_thr is {score_thr}; give a value from 0 to 1.')
    sheet = _read(Path(annotation_file), Path(results_file), score_thr)
    sheet = sheet._replace(images=spread(sheet.images, num_images))
    pairs = [
        Pair(
            Path(image_folder, image['file_name']),
            partial(_draw_objects, entries=sheet.truths[image['id']], sheet=sheet),
            partial(_draw_objects, entries=sheet.results[image['id']], sheet=sheet),
        )
        for image in sheet.images
    ]
    title = f'Ground truth beside predictions with a score of {score_thr:.2f} or more'
    return draw_sheet(pairs, title, _legend(sheet), out_file)


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


def _legend(sheet: _Sheet) -> dict[str, Colour]:
    """Return the colours of the classes that occur on the sheet, by name."""
    occurring = {
        entry['category_id']
        for group in (sheet.truths, sheet.results)
        for image in sheet.images
        for entry in group[image['id']]
    }
    return {sheet.names[category]: sheet.colours[category] for category in sorted(occurring)}


def _draw_objects(axes: 'Axes', entries: list[dict[str, Any]], sheet: _Sheet) -> None:
    """Draw boxes, masks and scores in their class colours, the highest score on top."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import Normal, Stroke

    for entry in sorted(entries, key=lambda entry: entry.get('score', 0)):
        x, y, width, height = entry['bbox']
        tone = sheet.colours[entry['category_id']]
        # Annotations measure from a pixel's edge, imshow from its centre.
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


def _draw_mask(axes: 'Axes', segmentation: Any, tone: Colour) -> None:
    """Tint the pixels of a mask, given as COCO polygons or run lengths."""
    from pycocotools import mask as coco_mask

    height, width = axes.images[0].get_size()
    if isinstance(segmentation, list):
        segmentation = coco_mask.merge(coco_mask.frPyObjects(segmentation, height, width))
    tint = np.zeros((height, width, 4))
    tint[coco_mask.decode(segmentation).astype(bool)] = (*tone, 0.45)
    axes.imshow(tint, interpolation='nearest')


def _label(axes: 'Axes', box: list[float], text: str, tone: Colour) -> None:
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
