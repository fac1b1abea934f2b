"""How the arguments of functions are called on a command line. This module needs only Python."""

import re

_NAMED = re.compile(
    r'`(?:(?P<argument>[a-z][a-z0-9_]*)(?:=(?P<value>[^`\n]*))?'
    r'|(?P<setting>\w+(?:\.\w+)+=[^`\n]*))`'
)


def as_flags(text: str) -> str:
    """The text of a message with flags in place of the arguments that it names between backquotes.

    ==================================  ==============================================
    `resume`                            --resume
    `work_dir=runs/1`                   --work-dir runs/1
    `overwrite=True`, `resume=auto`     --overwrite, --resume
    `draw=False`                        --no-draw
    `optim_wrapper.clip_grad=None`      --cfg-options optim_wrapper.clip_grad=None
    ==================================  ==============================================
    """
    return _NAMED.sub(_flag, text)


def _flag(found: re.Match[str]) -> str:
    if found['setting']:
        return f'--cfg-options {found["setting"]}'
    argument, value = found['argument'], found['value']
    flag = argument.replace('_', '-')
    if value == 'False':
        return f'--no-{flag}'
    return f'--{flag}' if value in (None, 'True', 'auto') else f'--{flag} {value}'
