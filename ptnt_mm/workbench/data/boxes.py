"""Boxes: rules for each of them, and what all together show about how they were written.

Both are for boxes as a file has them. Boxes that were clipped before always look correct.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter

import numpy as np

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.data.image_files import DROP_ROTATION
from ptnt_mm.workbench.data.labels import MANY, LabelRule, Outcome, are_many

_ROUNDING = 1.0  # pixels that a box may extend past its image: annotation tools round
_SOME = 0.05  # share of boxes not inside their images that shows corners
_MOST = 0.3  # share of boxes not inside their images that shows that they are not theirs
_SURE = 7  # such boxes that another form explains: too many for a coincidence, whatever their share
_LEFT = 0.1  # share of these boxes that another form may leave unexplained: they may be typos
_REPEATED = 0.01  # share of objects listed twice that public data sets have too
_ENOUGH = 5  # boxes that show that they are not those of their images
_ENOUGH_PLACES = 20  # boxes that show which part of the images they fill
_NEAR_THE_CORNER = 0.7  # share of an image's side: boxes in pixels reach further in some image
_FAR = 0.15  # share of a box's side outside the image that is more than a careless annotation


@dataclass(frozen=True)
class Boxes:
    """Boxes as they are written, and the sizes of their images.

    Attributes:
        values: (N, 4) as x, y, width, height in pixels.
        sizes: (N, 2) as width, height of each box's image in pixels.
        areas: (N,) areas of the objects in pixels, where the file states them and mmdet reads them.
        are_measured: Whether they are evaluated, and not trained on.
    """

    values: np.ndarray
    sizes: np.ndarray
    areas: np.ndarray | None = None
    are_measured: bool = False

    @cached_property
    def corners(self) -> np.ndarray:
        """(N, 4) as left, top, right, bottom in pixels."""
        with np.errstate(invalid='ignore'):  # infinity
            return np.hstack([self.values[:, :2], self.values[:, :2] + self.values[:, 2:]])

    @cached_property
    def is_finite(self) -> np.ndarray:
        """(N,)."""
        return np.isfinite(self.values).all(axis=1)

    @cached_property
    def is_beyond(self) -> np.ndarray:
        """Whether each reaches past its image by more than a rounding, (N,)."""
        return ~_inside(self.corners, self.sizes)

    @cached_property
    def inside(self) -> np.ndarray:
        """The parts inside the images, (N, 4) as left, top, right, bottom; they may be empty."""
        return np.clip(self.corners, 0, np.tile(self.sizes, 2))

    @cached_property
    def least_inside(self) -> np.ndarray:
        """The shorter side of each part inside an image, (N,); 0 or less if it is empty."""
        first = np.maximum(self.corners[:, :2], 0)
        return (np.minimum(self.corners[:, 2:], self.sizes) - first).min(axis=1)


def _has_no_area(boxes: Boxes) -> np.ndarray:
    return np.zeros(len(boxes.values), bool) if boxes.areas is None else boxes.areas <= 0


def _has_another_area(boxes: Boxes) -> np.ndarray:
    if boxes.areas is None or not boxes.are_measured:  # training only needs areas above 0
        return np.zeros(len(boxes.values), bool)
    pixels = boxes.values[:, 2:].prod(axis=1)
    return ~((boxes.areas < 1.5 * pixels + 4) & (boxes.areas > 0.001 * pixels))


_DROPPED = 'mmdet drops them silently'

BOX_RULES = (
    LabelRule(
        'boxes not finite',
        Severity.ERROR,
        'the loss would be NaN',
        outcome=Outcome.LEFT_OUT,
        applies_to=lambda boxes: ~boxes.is_finite,
    ),
    LabelRule(
        'boxes of negative size',
        Severity.ERROR,
        f'their corners are swapped, or the format is a different one; {_DROPPED}',
        outcome=Outcome.LEFT_OUT,
        applies_to=lambda boxes: (boxes.values[:, 2:] < 0).any(axis=1),
    ),
    LabelRule(
        'boxes less than 1 pixel wide or high',
        Severity.WARNING,
        f'{_DROPPED}, and the object is learned as background',
        outcome=Outcome.LEFT_OUT,
        applies_to=lambda boxes: (boxes.values[:, 2:] < 1).any(axis=1),
    ),
    LabelRule(
        'boxes outside of their images',
        Severity.ERROR,
        f'{_DROPPED}; are these the right images?',
        outcome=Outcome.LEFT_OUT,
        applies_to=lambda boxes: boxes.least_inside <= 0,
    ),
    # mmdet trains on these; clipped, they have no area.
    LabelRule(
        'boxes with less than 1 pixel inside their images',
        Severity.WARNING,
        'almost nothing of the object is visible: correct or remove them',
        outcome=Outcome.LEFT_OUT,
        applies_to=lambda boxes: boxes.least_inside < 1,
    ),
    LabelRule(
        'areas of 0 or less',
        Severity.ERROR,
        f'{_DROPPED}: area is width x height, or that of the mask',
        outcome=Outcome.LEFT_OUT,
        applies_to=_has_no_area,
    ),
    LabelRule(
        'boxes partly outside their images',
        Severity.WARNING,
        'they are clipped',
        outcome=Outcome.CLIPPED,
        applies_to=lambda boxes: boxes.is_beyond,
        advice_if_many='they are clipped; do they belong to these images, at this size?',
    ),
    LabelRule(
        'areas that do not match the boxes in pixels',
        Severity.WARNING,
        'the precision of small, medium and large objects depends on them',
        outcome=Outcome.KEPT,
        applies_to=_has_another_area,
    ),
)
"""Each row's predicate takes :class:`Boxes` and returns (N,) bool."""


def judge(boxes: Boxes) -> Iterator[tuple[LabelRule, np.ndarray]]:
    """The boxes that each rule applies to, (N,) bool; none applies to one that was dropped."""
    left = np.ones(len(boxes.values), bool)
    for rule in BOX_RULES:
        with np.errstate(invalid='ignore'):  # boxes that are not finite have the first rule
            chosen = left & rule.applies_to(boxes)
        yield rule, chosen
        left &= rule.remaining(chosen)


@dataclass(frozen=True)
class Listed:
    """An object as it is listed.

    Attributes:
        place: Its image and box.
        label: Its class.
        is_ignored: Whether it is a crowd, or does not count.
        mask: Polygons or run lengths, if it has any.
    """

    place: Hashable
    label: Hashable
    is_ignored: bool = False
    mask: object = None


def _is_again(objects: Sequence[Listed], with_equal_mask: bool) -> np.ndarray:
    seen: dict[Hashable, list[object]] = {}
    found = []
    for listed in objects:
        masks = seen.setdefault((listed.place, listed.label, listed.is_ignored), [])
        found.append(bool(masks) and (listed.mask in masks) is with_equal_mask)
        masks.append(listed.mask)
    return np.array(found, bool)


def _is_of_several_classes(objects: Sequence[Listed]) -> np.ndarray:
    seen: dict[Hashable, set[Hashable]] = {}
    found = []
    for listed in objects:
        # A region that is ignored for every class is listed with each of them.
        classes = set() if listed.is_ignored else seen.setdefault(listed.place, set())
        found.append(bool(classes) and listed.label not in classes)
        classes.add(listed.label)
    return np.array(found, bool)


REPEAT_RULES = (
    LabelRule(
        'objects listed twice',
        Severity.WARNING,
        'keep one of each: the model would learn to predict both',
        outcome=Outcome.LEFT_OUT,
        applies_to=partial(_is_again, with_equal_mask=True),
    ),
    # Small objects may have one box.
    LabelRule(
        'objects listed again with another mask',
        Severity.WARNING,
        'keep one of each, unless they are two: the model would learn to predict both',
        outcome=Outcome.KEPT,
        applies_to=partial(_is_again, with_equal_mask=False),
    ),
    # In some data sets, objects have several classes.
    LabelRule(
        'boxes listed again as a different class',
        Severity.WARNING,
        'keep the right one: the model would learn contradictory classes',
        outcome=Outcome.KEPT,
        applies_to=_is_of_several_classes,
        only_if_many=True,
    ),
)
"""Each row's predicate takes a list of :class:`Listed` and returns (N,) bool."""


def judge_repeats(objects: Sequence[Listed]) -> Iterator[tuple[LabelRule, np.ndarray]]:
    """The objects that each rule about repeated ones applies to, (N,) bool.

    Few repeats are notes: public data sets have them too.
    """
    for rule in REPEAT_RULES if objects else ():
        chosen = rule.applies_to(objects)
        if rule.only_if_many and not are_many(chosen):
            continue
        is_rare = chosen.mean() <= _REPEATED
        yield replace(rule, severity=Severity.NOTE) if is_rare else rule, chosen


@dataclass(frozen=True)
class BoxForm:
    """A way to write a box in four numbers.

    Attributes:
        text: The four numbers by name.
        exchanged: The same with y before x.
        read: Written numbers (N, 4) -> left, top, right, bottom (N, 4).
        write: The reverse.
    """

    text: str
    exchanged: str
    read: Callable[[np.ndarray], np.ndarray]
    write: Callable[[np.ndarray], np.ndarray]


def _from_centres(boxes: np.ndarray) -> np.ndarray:
    return np.hstack([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])


def _as_centres(corners: np.ndarray) -> np.ndarray:
    first, last = corners[:, :2], corners[:, 2:]
    return np.hstack([(first + last) / 2, last - first])


CORNER_AND_SIZE = BoxForm(
    '[x, y, width, height]',
    '[y, x, height, width]',
    lambda boxes: np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
    lambda corners: np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]]),
)
"""COCO."""

CORNERS = BoxForm(
    '[x1, y1, x2, y2]', '[y1, x1, y2, x2]', lambda boxes: boxes, lambda corners: corners
)
"""Pascal VOC and most others."""

CENTRE_AND_SIZE = BoxForm(
    '[centre x, centre y, width, height]',
    '[centre y, centre x, height, width]',
    _from_centres,
    _as_centres,
)
"""YOLO."""

_FORMS = (CORNERS, CORNER_AND_SIZE, CENTRE_AND_SIZE)


@dataclass(frozen=True)
class Cause:
    """Why many boxes are wrong at once.

    Attributes:
        what: The finding, with the plural of its subject: 'boxes not inside their images, ...'.
        advice: What to do.
        chosen: The boxes that show it, (N,) bool.
    """

    what: str
    advice: str
    chosen: np.ndarray

    @property
    def is_sure(self) -> bool:
        """Whether several boxes show it: a single one may be wrong for another reason."""
        return self.chosen.sum() > 1


def find_cause(boxes: Boxes, form: BoxForm, in_pixels: bool = True) -> Cause | None:
    """Find the one mistake that makes all boxes wrong; None without one.

    Args:
        boxes: All boxes that were written by one program, before any was clipped or dropped.
        form: The form in which they were read.
        in_pixels: Whether the file has pixels, and not shares of the image.
    """
    # One typo more or less does not matter here.
    finite = Boxes(boxes.values[boxes.is_finite], boxes.sizes[boxes.is_finite])
    if not finite.values.any():
        return None
    what, is_wrong = _cause(finite, form, in_pixels)
    if not what:
        return None
    chosen = boxes.is_finite.copy()
    chosen[chosen] = is_wrong
    unit = 'pixels' if in_pixels else 'shares of the width and height'
    advice = f'expected {form.text} in {unit} of the images as they are: convert the boxes'
    return Cause(what, advice, chosen)


def of_stored_pixels(boxes: Boxes, is_turned: np.ndarray) -> Cause | None:
    """Find that boxes were drawn on images as stored, which EXIF data turns; None if they were not.

    Args:
        boxes: All boxes, before any was clipped or dropped.
        is_turned: Whether EXIF data swaps the sides of each box's image, (N,) bool.
    """
    misfits = boxes.is_finite & boxes.is_beyond
    chosen = misfits & is_turned
    as_stored = Boxes(boxes.values, boxes.sizes[:, ::-1])
    unexplained = (misfits & ~is_turned) | (as_stored.is_beyond & is_turned)
    if not chosen.any() or unexplained.sum() > _LEFT * chosen.sum():
        return None
    if _outside_share(boxes, chosen) < _FAR:
        return None
    return Cause(
        'boxes not inside their images, all in images that EXIF data rotates: they would be inside '
        'the images as stored',
        f'{DROP_ROTATION}, or turn all boxes in such images',
        chosen,
    )


def near_the_corner(boxes: Boxes) -> tuple[str, str] | None:
    """Say that all boxes of all images are near the upper left corner, and why; None if not.

    Boxes in percent, and those of images that were enlarged later, fit into their images.
    """
    last, sizes = boxes.corners[:, 2:], boxes.sizes
    if len(last) < _ENOUGH_PLACES or not boxes.is_finite.all():
        return None
    reach = (last / sizes).max(axis=0)
    room = (boxes.values[:, :2] / sizes).min(axis=0)  # objects in the middle leave as much
    as_per_cent = last.max() <= 100 and np.median(sizes) > 110
    if not as_per_cent and ((reach >= _NEAR_THE_CORNER) | (room > (1 - reach) / 2)).any():
        return None
    across, down = (f'{part:.0%}' for part in reach)
    what = f'no box reaches beyond {across} of the width or {down} of the height of its image'
    return what, 'they may be in percent' if as_per_cent else 'they may be of smaller images'


def _cause(boxes: Boxes, form: BoxForm, in_pixels: bool) -> tuple[str, np.ndarray]:
    """The finding, empty without one, and the boxes that show it, (N,) bool."""
    written = form.write(boxes.corners)
    # Pascal VOC's reader subtracts half a pixel.
    if in_pixels and len(written) > 1 and written.min() >= -0.5 and written.max() <= 1:
        return 'boxes between 0 and 1, as shares of the image', np.ones(len(written), bool)
    misfits = boxes.is_beyond | (boxes.values[:, 2:] <= 0).any(axis=1)
    share = misfits.mean()
    if misfits.sum() < 2 or _outside_share(boxes, misfits) < _FAR:
        return '', misfits
    if other := _other_form(written, boxes.sizes, form, in_pixels, share):
        return f'boxes not inside their images, but all fit when read as {other}', misfits
    # As after two files were joined.
    is_common = share >= MANY and misfits.sum() >= _SURE
    if is_common and not _misfit(CORNERS.read(written[misfits]), boxes.sizes[misfits]):
        return f'boxes not inside their images, but these fit when read as {CORNERS.text}', misfits
    if share < _MOST or len(written) < _ENOUGH:
        return '', misfits
    reach = np.quantile(boxes.corners[:, 2:] / boxes.sizes, 0.99, axis=0)
    across, down = (f'{part:.0%}' for part in reach)
    what = f'they reach to {across} of the width and {down} of the height'
    unlike = 'as if they were of other images or of a different size'
    return f'boxes not inside their images, {unlike}: {what}', misfits


def _other_form(
    written: np.ndarray, sizes: np.ndarray, form: BoxForm, in_pixels: bool, share: float
) -> str:
    """The form in which nearly all boxes fit into their images; empty without one."""
    is_sure = share >= MANY or share * len(sizes) >= _SURE
    others = [(_misfit(f.read(written), sizes), f.text) for f in _FORMS if f is not form]
    # Shares of the width and of the height fit into every image, in either order.
    if in_pixels:
        turned = written[:, [1, 0, 3, 2]]
        others += [(_misfit(f.read(turned), sizes), f.exchanged) for f in (form, *_FORMS)]
    left, text = min(others, key=itemgetter(0))
    enough = is_sure or (text == CORNERS.text and share >= _SOME)
    return text if enough and left <= share * _LEFT else ''


def _outside_share(boxes: Boxes, misfits: np.ndarray) -> float:
    """The typical share of a side that is outside, of the boxes that do not fit."""
    corners, sizes = boxes.corners[misfits], boxes.sizes[misfits]
    sides = np.abs(corners[:, 2:] - corners[:, :2]).clip(min=1)
    outside = np.maximum(-corners[:, :2], corners[:, 2:] - sizes) / sides
    is_inverted = (corners[:, 2:] <= corners[:, :2]).any(axis=1)
    return float(np.median(np.where(is_inverted, 1.0, outside.max(axis=1))))


def _inside(corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    first, last = corners[:, :2], corners[:, 2:]
    return ((first >= -_ROUNDING) & (last <= sizes + _ROUNDING)).all(axis=1)


def _misfit(corners: np.ndarray, sizes: np.ndarray) -> float:
    """The share of boxes that have no area, or are not inside their images."""
    has_area = (corners[:, 2:] > corners[:, :2]).all(axis=1)
    return float(1 - (has_area & _inside(corners, sizes)).mean())
