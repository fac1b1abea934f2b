"""Errors that a user can fix. This module needs only Python: exported files run without torch."""


class UserError(Exception):
    """An error in the user's input; the message explains what is wrong and what to do.

    A message names the arguments of Python functions, between backquotes: `resume`,
    `out=model.onnx`, `overwrite=True`, and so the settings of a config: `model.backbone.depth=18`.
    Commands print the flags instead (`as_flags` in workbench/cli/flags.py): --resume, --out
    model.onnx, --overwrite, --cfg-options model.backbone.depth=18. A command line to be typed has
    its flags.

    The tools print it and exit with status 1; with PTNT_TRACEBACK=1, they print a traceback first.
    """


def message_of(error: BaseException) -> str:
    """The message of an error, to be part of another one.

    In errors of other libraries, `size` becomes 'size': it is not one of our arguments.
    """
    return str(error) if isinstance(error, UserError) else in_quotes(str(error))


def in_quotes(text: str) -> str:
    """Text of another library with quotes in place of backquotes."""
    return text.replace('`', "'")
