"""``ptnt completion``: print the completion of bash, zsh or fish."""

from argparse import Namespace

from ptnt_mm.workbench.cli.arguments import Argument, Command

# fmt: off
COMMAND = Command(
    'completion',
    'print the completion of bash, zsh or fish',
    """Print the completion script of a shell, for the tab key after ``ptnt``.

ptnt completion bash > ~/.local/share/bash-completion/completions/ptnt
ptnt completion zsh > ~/.zfunc/_ptnt
ptnt completion fish > ~/.config/fish/completions/ptnt.fish
""",
    words=(Argument('shell', 'whose script to print', choices=('bash', 'zsh', 'fish')),),
    order=17,
)
# fmt: on


def run(args: Namespace) -> None:
    """Print the completion script of a shell."""
    from ptnt_mm.workbench.cli.completion import completion

    print(completion(args.shell))
