"""The number of classes of a model's heads."""

import re
from collections.abc import Iterator

from torch import nn

from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, error, note, ok
from ptnt_mm.utils.text import counted, first_few

# A region proposal head has one class, a semantic head those of its maps, a backbone those of its
# pretraining; mmseg's STDCHead predicts borders between classes.
_OTHER_CLASSES = ('backbone', 'rpn_head', 'semantic_head', 'STDCHead')


def check_classes_of_heads(view: ConfigView, classes: tuple[str, ...]) -> Iterator[Finding]:
    """Compare every num_classes of the model with the number of class names.

    Without class names, nothing is compared.
    """
    counts = list(_class_counts(view))
    if not counts:
        yield note('model', 'no head has num_classes in the config')
        return
    if not classes:
        yield note('model', 'the class names are not known: num_classes was not compared')
        return
    wrong = [(path, count) for path, count in counts if count != len(classes)]
    for path, count in wrong:
        what = f'is {count}, the data has {counted(len(classes), "class")}: {first_few(classes)}'
        yield error(path, what, f'write {len(classes)}')
    if not wrong:
        yield ok('model', f'{len(counts)} x num_classes={len(classes)}')


def check_built_heads(
    view: ConfigView, model: nn.Module, classes: tuple[str, ...]
) -> Iterator[Finding]:
    """Compare the default numbers of classes in a built model with the number of names."""
    stated = {path for path, _ in _class_counts(view)}
    for name, module in model.named_modules():
        path = re.sub(r'\.(\d+)', r'[\1]', f'model.{name}') + '.num_classes'
        count = getattr(module, 'num_classes', None)
        # A segmenter itself repeats the number of its head.
        is_other = not name or path in stated or _is_other(path, type(module).__name__)
        if isinstance(count, int) and not is_other and classes and count != len(classes):
            what = f'is {count} by default, the data has {counted(len(classes), "class")}'
            yield error(path, what, f'write num_classes={len(classes)}')


def _class_counts(view: ConfigView) -> Iterator[tuple[str, int]]:
    """Each number of classes in a model's settings, with its path."""
    # Configs of mmpretrain have the preprocessor, which needs the number for Mixup, at their top.
    for part in ('model', 'data_preprocessor'):
        for path, settings in dicts_within(view.config.get(part), part):
            for key in ('num_classes', 'num_things_classes'):
                if isinstance(settings.get(key), int) and not _is_other(path, type_name(settings)):
                    yield f'{path}.{key}', settings[key]


def _is_other(path: str, kind: str) -> bool:
    """Whether a path leads into a part of the model with separate classes."""
    steps = (step.partition('[')[0] for step in path.split('.'))
    return any(name in _OTHER_CLASSES for name in (kind, *steps))
