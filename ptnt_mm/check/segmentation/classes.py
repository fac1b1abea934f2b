"""Class names of masks: as many as colours, and known to the data set's class if it has its own."""

from collections.abc import Iterator

from ptnt_mm.check.classes import repeated, unlike_the_first, wrong_kind
from ptnt_mm.check.segmentation.data import SegmentationData
from ptnt_mm.utils.findings import Finding, error, sound
from ptnt_mm.utils.text import nearest, some


def check_classes(data: list[SegmentationData]) -> Iterator[Finding]:
    """Look at the class names and their colours, and compare those of all data sets."""
    for one in data:
        found = list(faults(one))
        yield from found or [sound(one.name, f'{len(one.classes)} classes: {some(one.classes)}')]
    if data and not any(wrong_kind(data[0])):
        yield from unlike_the_first(data)


def faults(data: SegmentationData) -> Iterator[Finding]:
    """What is wrong with the class names of a data set by themselves."""
    found = [*wrong_kind(data)]
    yield from found or [*repeated(data), *_strangers(data), *_colours(data)]


def _strangers(data: SegmentationData) -> Iterator[Finding]:
    """Names that the data set's class, which has names of its own, cannot map to them."""
    known = _own(data, 'classes')
    strangers = [name for name in data.classes if known and name not in known]
    if strangers:
        named = some(f'{name!r}{nearest(name, known)}' for name in strangers)
        yield error(
            data.name,
            f'metainfo.classes has what is no class of {data.cls.__name__}: {named}',
            "type='BaseSegDataset' takes any names; give img_suffix, seg_map_suffix and "
            'reduce_zero_label with it',
        )


def _colours(data: SegmentationData) -> Iterator[Finding]:
    stated = (data.data_set.settings.get('metainfo') or {}).get('palette')
    colours = _own(data, 'palette') if stated is None else stated
    count, known = len(data.classes), _own(data, 'classes')
    if len(colours) in (0, count):
        return
    if len(colours) > count and known and set(data.classes) < set(known):
        # mmseg takes those of the classes that are asked for.
        return
    yield error(
        data.name,
        f'metainfo.palette has {len(colours)} colours, there are {count} classes: '
        f'{some(data.classes)}',
        'give a colour to each class, or leave the palette out: mmseg then draws by chance',
    )


def _own(data: SegmentationData, key: str) -> tuple:
    """What the data set's class says of its data itself."""
    return tuple(getattr(data.cls, 'METAINFO', {}).get(key) or ())
