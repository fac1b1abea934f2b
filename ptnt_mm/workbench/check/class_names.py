"""Class names: a tuple of distinct names, present in the annotations, equal in all data sets."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ptnt_mm.utils.findings import Finding, error, ok, warning
from ptnt_mm.utils.text import counted, first_few, spellings, suggest
from ptnt_mm.workbench.check.coco_annotations import DetectionDataset
from ptnt_mm.workbench.check.data_sets import LoadedDataset, as_names, misread_names


def check_class_names(data: Sequence[LoadedDataset]) -> Iterator[Finding]:
    """Check the class names of each data set, and compare them with those of the first."""
    for dataset in data:
        found = [*findings_of_names(dataset), *_without_objects(dataset)]
        classes = counted(len(dataset.classes), 'class')
        yield from found or [ok(dataset.name, f'{classes}: {first_few(dataset.classes)}')]
    if data and names_are_known(data[0]):
        names = data[0].classes
        for other in data[1:]:
            # Trackers are evaluated on data sets whose classes come from the metric.
            is_of_metric = isinstance(other, DetectionDataset) and not other.is_a('BaseDetDataset')
            if other.classes and other.classes != names and not is_of_metric:
                what = f'the classes are {first_few(other.classes)}; those of {data[0].name} are'
                advice = 'use the same names in the same order everywhere: labels are their indices'
                yield error(other.name, f'{what} {first_few(names)}', advice)


def names_for_heads(data: Sequence[LoadedDataset]) -> tuple[str, ...]:
    """The class names of the heads; empty if they are unknown.

    They are those of the training data, or of any data if nothing is trained.
    """
    for dataset in [dataset for dataset in data if dataset.trains] or data:
        if names_are_known(dataset):
            # With panoptic data, heads distinguish only things.
            own = getattr(dataset.cls, 'METAINFO', {}) | dataset.data_set.metainfo
            return as_names(own.get('thing_classes')) or dataset.classes
    return ()


def names_are_known(data: LoadedDataset) -> bool:
    """Whether class names are those of the data set, even if misspelt."""
    if any(misread_names(data)):
        return False
    # Without names in the config, those of the data set's class may belong to other data.
    own = data.stated is None and isinstance(data, DetectionDataset) and data.file is not None
    return not own or set(data.classes) <= set(data.file.names.values())


def findings_of_names(data: LoadedDataset) -> Iterator[Finding]:
    """Errors and warnings about the class names of a single data set."""
    if found := list(misread_names(data)):
        yield from found
        return
    twice = [name for name, count in Counter(data.classes).items() if count > 1]
    # Two classes of ImageNet are cranes, so the default names of a class are not checked.
    if twice and data.stated is not None:
        what = f'metainfo.classes has duplicate names: {first_few(twice)}'
        yield error(data.name, what, 'name each class once')
    if data.stated is not None and (groups := spellings(data.classes)):
        names = '; '.join(first_few(map(repr, group)) for group in groups)
        what = f'metainfo.classes has names that differ only in capitals or separators: {names}'
        advice = 'each is a separate class; if they are one, use one spelling in the labels'
        yield warning(data.name, what, advice)
    if isinstance(data, DetectionDataset) and data.file is not None:
        yield from _against_categories(data)
    elif data.scope == 'mmseg':
        yield from _against_own_names(data)


def _against_categories(data: DetectionDataset) -> Iterator[Finding]:
    categories = [category['name'] for category in data.file.categories]
    repeated = [name for name in data.classes if categories.count(name) > 1]
    if repeated:
        what = f'several categories of {data.file.path} have the same name: {first_few(repeated)}'
        advice = 'mmdet gives each a separate label, one more than there are classes: merge them'
        yield error(data.name, what, advice)
    absent = [name for name in data.classes if name not in categories]
    asked = [name for name in categories if name in data.classes]
    if absent:
        yield _absent(data, absent, categories)
    else:
        yield from _dropped(data)
    if not absent and asked != list(data.classes) and len(asked) == len(set(data.classes)):
        yield error(
            data.name,
            f'the order of the categories is {first_few(asked)}, that of metainfo.classes is '
            f'{first_few(data.classes)}',
            "labels follow the file's order: use it in metainfo.classes, or predictions get "
            'wrong names',
        )


def _without_objects(data: LoadedDataset) -> Iterator[Finding]:
    """Report classes that are categories of a file and have no object in it."""
    if not isinstance(data, DetectionDataset) or data.file is None or any(misread_names(data)):
        return
    names = data.file.names
    seen = {names.get(entry['category_id']) for entry in data.file.annotations}
    unseen = [name for name in data.classes if name in names.values() and name not in seen]
    if seen and unseen:
        lacks = 'they cannot be learned' if data.trains else 'their precision cannot be measured'
        yield warning(data.name, f'no object of {first_few(unseen)}', f'{lacks} from this file')


def _absent(data: DetectionDataset, absent: list[str], categories: list[str]) -> Finding:
    path = data.file.path
    if data.stated is None:
        return error(
            data.name,
            f'metainfo has no classes, and {len(absent)} of the {len(data.classes)} that the data '
            f'set has by default are not in {path}, which has {first_few(categories)}',
            'write metainfo=dict(classes=(...)) with the names of the file',
        )
    spare = [name for name in categories if name not in data.classes]
    named = _with_nearest(absent, spare)
    what = f'metainfo.classes has names that are not categories of {path}: {named}'
    advice = (
        'spell metainfo.classes as the categories: mmdet silently drops the boxes of all others'
    )
    return error(data.name, what, advice)


def _dropped(data: DetectionDataset) -> Iterator[Finding]:
    """Report categories with objects that are not among the classes."""
    names, labels = data.file.names, data.labels
    ids = (entry['category_id'] for entry in data.file.annotations)
    counts = Counter(names[i] for i in ids if i in names and i not in labels)
    if counts:
        which = first_few(f'{name!r} ({count})' for name, count in counts.items())
        yield warning(
            data.name,
            f'{counts.total()} of {len(data.file.annotations)} objects are skipped, as their '
            f'categories are not among the classes: {which}',
            'add them to metainfo.classes, unless this is intended',
        )


def _against_own_names(data: LoadedDataset) -> Iterator[Finding]:
    """Compare names and colours with the defaults of the data set's class, which maps names."""
    own = getattr(data.cls, 'METAINFO', {})
    known = own.get('classes', ())
    strangers = [name for name in data.classes if known and name not in known]
    if strangers:
        named = _with_nearest(strangers, known)
        yield error(
            data.name,
            f'metainfo.classes has names that are not classes of {data.cls.__name__}: {named}',
            "type='BaseSegDataset' takes any names; set img_suffix, seg_map_suffix and "
            'reduce_zero_label with it',
        )
    colours, count = (own | data.data_set.metainfo).get('palette') or (), len(data.classes)
    # From a full palette, mmseg selects the colours of the chosen classes.
    picked = len(colours) > count and set(data.classes) < set(known)
    if len(colours) not in (0, count) and not picked:
        yield error(
            data.name,
            f'metainfo.palette has {len(colours)} colours, but there are {count} classes: '
            f'{first_few(data.classes)}',
            'add a colour for each class, or omit the palette: mmseg then uses random colours',
        )


def _with_nearest(names: Sequence[str], known: Sequence[str]) -> str:
    return first_few(f'{name!r}{suggest(name, known, "; nearest is {!r}")}' for name in names)
