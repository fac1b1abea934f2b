"""The completion script of a shell, for the tab key after ``ptnt``."""

import argparse
from pathlib import Path

import shtab

from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.start import parser_of
from ptnt_mm.workbench.config.zoo import config_names


def completion(shell: str) -> str:
    """A script for a shell: commands, flags, choices, files and the names of configs.

    The script contains all of them, so that a key press does not start Python.
    """
    root = argparse.ArgumentParser('ptnt')
    commands = root.add_subparsers(parser_class=lambda parser, **settings: parser)
    for name, command in COMMANDS.items():
        parser = parser_of(name)
        parser.description = command.title
        _mark(parser)
        commands.add_parser(name, help=command.title, parser=parser)
    return shtab.complete(root, shell)


def _mark(parser: argparse.ArgumentParser) -> None:
    """Mark for shtab the arguments that are configs or files: those without another type."""
    for action in parser._actions:
        # After an option of several words, or of none, the next word may be another option.
        one_word = action.nargs is None or not action.option_strings
        if action.nargs == argparse.PARSER:  # subcommands
            for part in action.choices.values():
                _mark(part)
        elif action.dest == 'config':
            action.complete = _configs()
        elif one_word and not action.choices and action.type in (None, Path):
            action.complete = shtab.FILE


def _configs() -> dict:
    """The completion of a config by shtab: its name, or a file."""
    names = ' '.join(config_names())
    bash = f'compgen -f -- $1; compgen -W "{names}" -- $1'
    zsh = f"_alternative 'names:config:({names})' 'files:file:_files'"
    function = '_ptnt_config_files() {{ {}; }}'
    return {
        'bash': '_ptnt_config_files',
        'zsh': '_ptnt_config_files',
        'fish': f'(__fish_complete_path (commandline -ct)) {names}',
        'preamble': {'bash': function.format(bash), 'zsh': function.format(zsh)},
    }
