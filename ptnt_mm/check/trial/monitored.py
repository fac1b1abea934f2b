"""Names of metrics that hooks and schedules watch."""

from collections.abc import Collection, Iterator

from mmengine.hooks import CheckpointHook

from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, error, warning
from ptnt_mm.utils.text import first_few, suggest


def check_monitored(view: ConfigView, measured: Collection[str]) -> Iterator[Finding]:
    """Compare the names of watched metrics with those that evaluators measure."""
    for where, name, rule in _watched(view):
        if name not in measured:
            # The most common mistake is to omit the prefix.
            same = [other for other in measured if other.rpartition('/')[2] == name]
            near = f'did you mean {same[0]!r}?' if same else suggest(name, measured)
            what = f'is {name!r}, which is not measured: {near or "no metric has a similar name"}'
            yield error(where, what, f'write one of {first_few(measured, 20)}')
        elif rule == 'less' and _is_better_if_greater(name):
            where = f'{where.rpartition(".")[0]}.rule'
            yield warning(where, f"is 'less', but higher is better for {name}", "write 'greater'")


def _watched(view: ConfigView) -> Iterator[tuple[str, str, str | None]]:
    """The path of each setting with a metric's name, the name, and the comparison rule."""
    hook = view.default_hook('checkpoint')
    best, rules = hook.get('save_best') or (), hook.get('rule')
    best = [best] if isinstance(best, str) else best
    rules = rules if isinstance(rules, (list, tuple)) else [rules] * len(best)
    for name, rule in zip(best, rules, strict=False):
        # With 'auto' it is the first metric.
        if name != 'auto':
            yield 'default_hooks.checkpoint.save_best', name, rule
    for i, settings in enumerate(view.custom_hooks):
        if type_name(settings) == 'EarlyStoppingHook' and 'monitor' in settings:
            yield f'custom_hooks[{i}].monitor', settings['monitor'], settings.get('rule')
    for i, settings in enumerate(view.schedulers):
        if type_name(settings).startswith('ReduceOnPlateau') and 'monitor' in settings:
            yield f'param_scheduler[{i}].monitor', settings['monitor'], settings.get('rule')


def _is_better_if_greater(name: str) -> bool:
    """Whether MMEngine would prefer larger values of a metric of this name."""
    short = name.rpartition('/')[2].lower()
    return any(key.lower() in short for key in CheckpointHook._default_greater_keys)
