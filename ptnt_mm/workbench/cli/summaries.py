"""The summaries that commands end with: scores, paths, and the commands that follow."""

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.utils.console import for_user, show
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.metrics import readable
from ptnt_mm.utils.tables import new_listing, to_lines, to_text
from ptnt_mm.utils.text import counted, duration, from_here

if TYPE_CHECKING:
    from mmengine.config import Config
    from mmengine.runner import Runner

_OF_TRAINING = (
    'train_',
    'val_',
    'optim_wrapper',
    'param_scheduler',
    'auto_scale_lr',
    'default_hooks',
)
"""How settings begin that prediction does not read."""

_MOST = 30  # classes


def after_new(folder: Path, config: 'Config', has_errors: bool) -> str:
    """The commands that follow."""
    from ptnt_mm.workbench.config.view import ConfigView
    from ptnt_mm.workbench.export.export import suggested_size

    project = shlex.quote(str(folder))
    if has_errors:
        return f'Next: correct the errors above, then check again:\n  ptnt check {project}'
    view = ConfigView(config)
    # Scores on the validation images come with training.
    test = ['test'] if view.has_test_images else []
    following = [f'  ptnt {word} {project}' for word in ('train', *test, 'report', 'infer PHOTOS')]
    if size := suggested_size(config):
        height, width = size
        following.append(f'  ptnt export {project} --out model.onnx --size {height} {width}')
    others = 'ptnt weights lists other pretrained backbones for --backbone'
    return '\n'.join(('Next:', *following, others))


def after_pretrain(file: Path, backbone: str) -> str:
    """The commands that use the weights."""
    path, name = shlex.quote(from_here(file)), shlex.quote(backbone)
    return (
        f'Weights of the backbone: {from_here(file)}\n\nNext:\n'
        f'  ptnt new IMAGES PROJECT --backbone {name} --weights {path}\n'
        f'  ptnt train CONFIG --pretrained {path}\n'
        f'  ptnt checkpoint inspect {path}'
    )


def after_train(runner: 'Runner', args: Namespace) -> str:
    """The scores of the best evaluation, the paths of the results, and the next commands."""
    from ptnt_mm.hooks.run_checkpoints import best_checkpoint, latest_checkpoint
    from ptnt_mm.workbench.config.view import ConfigView
    from ptnt_mm.workbench.engine.run_display import display_of
    from ptnt_mm.workbench.engine.runner import log_file
    from ptnt_mm.workbench.pages.curves import draw_curves

    # As it was given; the runner's path is absolute.
    work_dir = Path(runner.cfg.work_dir)
    try:
        curves = draw_curves(work_dir, work_dir / 'curves.png')
    except (OSError, UserError) as error:
        # Only the weights matter: a run that cannot be drawn is still successful.
        curves = None
        show(for_user(f'warning: no curves were drawn: {error}'))
    last, best = latest_checkpoint(work_dir), best_checkpoint(work_dir)
    paths = dict(
        checkpoint=last, best=None if best == last else best, log=log_file(), curves=curves
    )
    following = [['ptnt', 'report', from_here(work_dir)]]
    if best:
        # In its own work dir, the checkpoint of an unchanged config is found without its name.
        options = [word for word in args.cfg_options if not word.startswith(_OF_TRAINING)]
        changed = [str(best)] if args.work_dir or options else []
        options = ['--cfg-options', *options] if options else []
        view = ConfigView(runner.cfg)
        if view.has_test_images:
            root = ['--data-root', str(args.data_root)] if args.data_root else []
            following.insert(0, ['ptnt', 'test', args.config, *changed, *root, *options])
        following.append(['ptnt', 'infer', 'PHOTOS', args.config, *changed, *options])
    display = display_of(runner)
    parts = [
        f'Done in {duration(display.took)}{display.summary and ": "}{display.summary}',
        class_table(display.classes),
        to_lines({name: from_here(path) for name, path in paths.items() if path}),
        '\n  '.join(['Next:', *map(shlex.join, following)]),
    ]
    return '\n\n'.join(filter(None, parts))


def before_test(runner: 'Runner', checkpoint: str) -> str:
    """The first line of a test: the checkpoint, the number of images and views, the split."""
    from ptnt_mm.workbench.config.tta import views_of
    from ptnt_mm.workbench.config.view import ConfigView

    view = ConfigView(runner.cfg)
    parts = [
        f'Testing {from_here(checkpoint)} on '
        + counted(len(runner.test_loop.dataloader.dataset), 'image')
    ]
    if (views := views_of(view.test.pipeline)) > 1:
        parts.append(f'each in {views} views')
    if not view.has_test_images:
        chose = ', which chose this checkpoint' if Path(checkpoint).name.startswith('best_') else ''
        parts.append(f'the same as in validation{chose}')
    return ', '.join(parts)


def after_test(metrics: dict[str, float], runner: 'Runner', args: Namespace) -> str:
    """All scores, those of the classes, and the paths of the results."""
    from ptnt_mm.workbench.engine.health import NO_FIGURES
    from ptnt_mm.workbench.engine.run_display import display_of
    from ptnt_mm.workbench.engine.runner import log_file

    paths = dict(log=log_file(), predictions=args.out, pictures=args.show_dir)
    parts = [
        to_lines(readable(metrics)) or NO_FIGURES,
        class_table(display_of(runner).classes),
        to_lines({name: from_here(path) for name, path in paths.items() if path is not None}),
    ]
    return '\n\n'.join(filter(None, parts))


def class_table(rows: Sequence[Mapping[str, object]]) -> str:
    """A line for each class with its scores; empty if there are no rows."""
    if not rows:
        return ''
    table = new_listing()
    for name in rows[0]:
        table.add_column(name, justify='left' if name == 'class' else 'right')
    for row in rows[:_MOST]:
        table.add_row(*map(_cell, row.values()))
    more = len(rows) - _MOST
    return to_text(table) + (f'\n... and {more} more: ptnt report shows all' if more > 0 else '')


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return '–'
    return f'{value:.3f}' if isinstance(value, float) else str(value)
