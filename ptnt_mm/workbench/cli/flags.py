"""The flags of messages: errors name the arguments of functions, and commands print flags."""

import re

from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.shared import DATA_ROOT, cfg_options

_NAMED = re.compile(r'`(?:([a-z_0-9]+)(?:=([^`\n]*))?|(\w+(?:\.\w+)+=[^`\n]*))`')
_FLAGS = {option.name: option for command in COMMANDS.values() for option in command.keywords}
_FLAGS |= dict(options=cfg_options(''), data_root=DATA_ROOT)  # arguments of read_config


def as_flags(text: str) -> str:
    """The text of a message with flags in place of the arguments that it names between backquotes.

    =================================  ==============================================
    `resume`                           --resume
    `work_dir=runs/1`                  --work-dir runs/1
    `overwrite=True`, `resume=auto`    --overwrite, --resume
    `draw=False`                       --no-draw
    `optim_wrapper.clip_grad=None`     --cfg-options optim_wrapper.clip_grad=None
    =================================  ==============================================

    What is not an option or a setting stays as it is.
    """
    return _NAMED.sub(_as_flag, text)


def _as_flag(found: re.Match[str]) -> str:
    name, value, changed = found.groups()
    if changed:
        return f'--cfg-options {changed}'
    return _FLAGS[name].as_typed(value) if name in _FLAGS else found[0]
