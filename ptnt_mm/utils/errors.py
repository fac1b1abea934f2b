"""Errors that a user can fix. This module needs only Python: exported files run without torch."""


class UserError(Exception):
    """An error in the user's input; the message explains what is wrong and what to do.

    The tools print it and exit with status 1; with PTNT_TRACEBACK=1, they print a traceback first.
    """
