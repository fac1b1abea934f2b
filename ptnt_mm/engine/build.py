"""From a config to a runner, the same for training and testing."""

import importlib
from pathlib import Path

from mmengine.config import Config
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from ptnt_mm.engine.config import explain_build_error
from ptnt_mm.engine.runner import QuietRunner
from ptnt_mm.errors import UserError

_GUARD = 'CheckpointGuardHook'


def choose_work_dir(config: Config, asked: Path | None) -> Path:
    """The work dir: as asked, or as the config says, or ``work_dirs/<config>``."""
    config.work_dir = str(
        asked or config.get('work_dir') or Path('work_dirs', Path(config.filename).stem)
    )
    return Path(config.work_dir)


def build_runner(config: Config) -> Runner:
    """Import the host library and build the runner, with safe and loud checkpoint loading.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments.
    """
    _import_host(config.get('default_scope') or 'mmengine')
    hooks = config.get('custom_hooks') or []
    if all(hook.get('type') != _GUARD for hook in hooks):
        config.custom_hooks = [*hooks, dict(type=_GUARD)]
    try:
        return RUNNERS.build(config) if 'runner_type' in config else QuietRunner.from_cfg(config)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f'{config.filename} cannot be built: {explain_build_error(error)}'
        ) from error


def _import_host(scope: str) -> None:
    try:
        importlib.import_module(scope)
    except (ImportError, AssertionError) as error:
        raise UserError(
            f'{scope} cannot be imported: {error}. python -m ptnt_mm.doctor says what to do'
        ) from error
