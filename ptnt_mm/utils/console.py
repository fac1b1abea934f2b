"""Print text with its bad news in colour, where a terminal shows it."""

from rich.console import Console
from rich.highlighter import RegexHighlighter


class _BadNews(RegexHighlighter):
    """The colour is the name of the group."""

    highlights = (r'(?m)^ *(?P<red>error)\b', r'(?m)^ +(?P<yellow>warning)\b', r'(?P<red>BROKEN)')


def show(text: str, stderr: bool = False) -> None:
    """Print text: in colours on a terminal unless NO_COLOR is set, as it is anywhere else."""
    console = Console(stderr=stderr, highlighter=_BadNews())
    console.print(text, markup=False, emoji=False, soft_wrap=True)
