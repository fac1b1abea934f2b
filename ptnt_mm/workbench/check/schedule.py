"""The schedule: lengths in iterations, the effective batch, and the learning rate."""

from collections.abc import Iterator, Sequence

from ptnt_mm.utils.findings import Finding, error, note, ok, warning
from ptnt_mm.utils.numbers import is_number
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.check.data_sets import LoadedDataset
from ptnt_mm.workbench.check.rules import ENDS_EARLY, early_end
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.view import ConfigView

# A higher rate was meant for SGD: published ones for Adam and AdamW are at most 4e-3, or belong to
# larger batches.
_ADAM_LIMIT = 5e-3
_LARGE = 512  # images

LEARNING_RATE = 'Learning rate'


def check_lengths(view: ConfigView, data: Sequence[LoadedDataset], gpus: int) -> Iterator[Finding]:
    """Compare lengths in iterations with the lengths of an epoch and of training, if known."""
    epochs = view.train.loop.get('max_epochs')
    images = _images_of_an_epoch(view, data)
    if not isinstance(epochs, int) or not images:
        return
    batch = view.train.batch_size * gpus
    length = -(-images // max(batch, 1))
    for i, schedule in enumerate(view.schedulers):
        end = schedule.get('end')
        if not schedule.get('by_epoch', True) and isinstance(end, int) and end > length * epochs:
            run = f'{counted(epochs, "epoch")} of {length} iterations'
            what = f'is {end}, but training ends after {run}'
            yield warning(f'param_scheduler[{i}].end', what, 'lower it, or train for longer')
    last = early_end(view, False, length * epochs)
    if last and not any(schedule.get('by_epoch', True) for schedule in view.schedulers):
        what, advice = ENDS_EARLY
        found = f'{last:g} of {length * epochs} iterations'
        yield warning('param_scheduler', what.format(found=found), advice)
    logger = view.default_hook('logger')
    interval = logger.get('interval', 10)
    # MMEngine also logs at the end of an epoch that is not long.
    is_long = logger.get('ignore_last', True) and length > logger.get('interval_exp_name', 1000)
    if isinstance(interval, int) and interval > length and is_long:
        what = f'is {interval}, but an epoch has {length} iterations: no loss is logged'
        yield note('default_hooks.logger.interval', what)


def check_batch(view: ConfigView, gpus: int) -> Iterator[Finding]:
    """Report the effective batch: the images that one step of the optimizer learns from."""
    images, steps = view.train.batch_size, view.accumulated_steps
    parts = ((images, 'image'), (gpus, 'process'), (steps, 'step'))
    batch = ' x '.join(counted(number, noun) for number, noun in parts)
    yield ok('Effective batch', f'{batch} = {images * gpus * steps}')


def check_learning_rate(view: ConfigView, gpus: int) -> Iterator[Finding]:
    """Compare the learning rate with the one for the effective batch."""
    optimizer = view.optimizer
    lr, where = optimizer.get('lr'), LEARNING_RATE
    if lr is None:
        yield note(where, "the optimizer's own default")
        return
    if not is_number(lr) or not lr > 0:
        yield error(where, f'{lr!r} is not a number above 0', 'set optim_wrapper.optimizer.lr')
        return
    images, steps = view.train.batch_size, view.accumulated_steps
    batch, scale = images * gpus * steps, view.auto_scale_lr
    base = scale.get('base_batch_size')
    # MMEngine scales by the images loaded at once and ignores accumulated steps.
    scaled = base and f'{lr * images * gpus / base:.3g}'
    if base is None:
        unknown = f'{lr}; the config does not state its batch, and yours is {batch}'
        yield note(where, unknown, 'compare it with the batch of the published recipe')
    elif scale.get('enable'):
        yield ok(where, f'{lr} is for batch {base}, scaled to {scaled}')
    elif base == batch:
        yield ok(where, f'{lr}, which is for this batch')
    else:
        summed = ' ignores accumulated steps and' if steps > 1 else ''
        scaling = f'`auto_scale_lr=True`{summed} would make it {scaled}'
        yield warning(where, f'{lr} is for batch {base}; {scaling}')
    if 'Adam' in str(optimizer.get('type')) and lr > _ADAM_LIMIT and (base or batch) < _LARGE:
        what = f'{lr} is high for {optimizer.type}, and the loss may become NaN'
        yield warning(where, what, 'published recipes have 1e-4 to 4e-3')


def _images_of_an_epoch(view: ConfigView, data: Sequence[LoadedDataset]) -> int | None:
    """The number of images in a pass through the training data; None if unknown."""
    data_set, times = view.train.dataset, 1
    while type_name(data_set) == 'RepeatDataset':
        data_set, times = data_set['dataset'], times * data_set['times']
    trained = [dataset for dataset in data if dataset.trains]
    if 'dataset' in data_set or 'datasets' in data_set or len(trained) != 1:
        return None
    # mmdet filters its list.
    return len(getattr(trained[0], 'used', None) or trained[0].images) * times
