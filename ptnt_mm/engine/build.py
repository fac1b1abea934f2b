"""From a config to a runner, the same for training and testing."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from ptnt_mm.engine.config import explain_build_error, how_to_install, is_about_the_config
from ptnt_mm.engine.runner import QuietRunner
from ptnt_mm.engine.safeguards import add_hooks
from ptnt_mm.engine.work_dir import make_work_dir
from ptnt_mm.utils.errors import UserError

_GUARD = ('CheckpointGuardHook',)


def choose_work_dir(config: Config, asked: Path | None) -> Path:
    """The work dir, made: as asked, or as the config says, or ``work_dirs/<config>``.

    Raises:
        UserError: if it cannot be written to.
    """
    default = Path('work_dirs', Path(config.filename).stem)
    work_dir = Path(asked or config.get('work_dir') or default)
    make_work_dir(work_dir)
    config.work_dir = str(work_dir)
    return work_dir


def build_runner(config: Config) -> Runner:
    """Import the host library and build the runner, with safe and loud checkpoint loading.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments.
    """
    import_host(config.get('default_scope') or 'mmengine')
    add_hooks(config, _GUARD)
    with explained_building(config):
        return RUNNERS.build(config) if 'runner_type' in config else QuietRunner.from_cfg(config)


@contextmanager
def explained_building(config: Config) -> Iterator[None]:
    """Explain what a constructor refuses of a config.

    Raises:
        UserError: in place of whatever it raises.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # constructors complain in every way there is
        raise UserError(
            f'{config.filename} cannot be built: {explain_build_error(error)}'
        ) from error


@contextmanager
def late_building() -> Iterator[None]:
    """Explain what the runner finds only when it starts: data sets, optimizers and schedules.

    Raises:
        UserError: if a constructor refuses an argument, or a type is not registered.
    """
    try:
        yield
    except (KeyError, TypeError) as error:
        if is_about_the_config(error):
            raise UserError(explain_build_error(error)) from error
        raise


def import_host(scope: str) -> None:
    """Import the library that a config's default scope names.

    Raises:
        UserError: if that fails.
    """
    try:
        importlib.import_module(scope)
    except ModuleNotFoundError as error:
        raise UserError(f'{scope} cannot be imported: {error}. {how_to_install(error)}') from error
    except (ImportError, AssertionError) as error:
        raise UserError(
            f'{scope} cannot be imported: {error}. python -m ptnt_mm.doctor says what to do'
        ) from error
