"""Class names: a tuple of different names, the same for all data sets."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ptnt_mm.check.data import Data
from ptnt_mm.utils.findings import Finding, error, note
from ptnt_mm.utils.text import some


def wrong_kind(data: Data) -> Iterator[Finding]:
    """Names that MMEngine takes for something else, or does not see."""
    metainfo = data.data_set.settings.get('metainfo') or {}
    if 'CLASSES' in metainfo and 'classes' not in metainfo:
        yield error(data.name, 'metainfo.CLASSES is read by nothing', 'write classes=(...)')
    elif isinstance(data.stated, str):
        yield error(
            data.name,
            f'metainfo.classes is the text {data.stated!r}, not a tuple of names',
            f'a single class needs its comma: classes=({data.stated!r},)',
        )
    elif data.stated is not None and not isinstance(data.stated, (list, tuple)):
        yield error(data.name, f'metainfo.classes is {data.stated!r}', 'expected names: (...,)')
    elif data.stated is None and not data.classes:
        # A data set's class may read them when it is built.
        yield note(data.name, 'metainfo.classes is not there: class names were not compared')
    elif not data.classes:
        yield error(data.name, 'metainfo.classes names no class', "write classes=('name', ...)")


def repeated(data: Data) -> Iterator[Finding]:
    """Names that are there twice."""
    twice = [name for name, count in Counter(data.classes).items() if count > 1]
    if twice:
        yield error(
            data.name, f'metainfo.classes has names twice: {some(twice)}', 'name each class once'
        )


def unlike_the_first(data: Sequence[Data]) -> Iterator[Finding]:
    """Data sets with other names than the first, which is the one that is trained on."""
    for other in data[1:]:
        if other.classes and other.classes != data[0].classes:
            yield error(
                other.name,
                f'the classes are {some(other.classes)}; those of {data[0].name} are '
                f'{some(data[0].classes)}',
                'give all data sets the same names in the same order: labels are their places',
            )
