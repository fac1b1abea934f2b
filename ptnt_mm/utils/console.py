"""Print text with errors and warnings in colour on a terminal."""

from rich.console import Console
from rich.highlighter import RegexHighlighter


class _BadNews(RegexHighlighter):
    """Highlights errors and warnings; each group is named by its colour."""

    highlights = (r'(?m)^ *(?P<red>error)\b', r'(?m)^ +(?P<yellow>warning)\b', r'(?P<red>BROKEN)')


def show(text: str, stderr: bool = False) -> None:
    """Print text, in colours on a terminal unless NO_COLOR is set."""
    console = Console(stderr=stderr, highlighter=_BadNews())
    console.print(text, markup=False, emoji=False, soft_wrap=True)
