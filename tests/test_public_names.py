"""Names that configs, scripts and command lines use still work."""

import inspect
import json
from importlib import import_module

import mmengine.registry
import pytest
from mmengine.registry import Registry
from repository import ROOT

from ptnt_mm import api
from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.config.zoo import config_names

NAMES = json.loads(ROOT.joinpath('tests', 'data', 'public_names.json').read_text())
REGISTRIES = {r.name: r for r in vars(mmengine.registry).values() if isinstance(r, Registry)}


def test_registered_classes():
    known = {kind: REGISTRIES[kind].module_dict for kind in NAMES['registered']}
    missing = {
        name
        for kind, names in NAMES['registered'].items()
        for name in names
        if name not in known[kind]
    }
    assert not missing


@pytest.mark.parametrize('name', NAMES['functions'])
def test_functions_keep_their_arguments(name):
    assert set(NAMES['functions'][name]) <= set(inspect.signature(getattr(api, name)).parameters)


def test_configs():
    assert set(NAMES['configs']) <= set(config_names())


@pytest.mark.parametrize('words', NAMES['flags'])
def test_flags(words):
    command, *part = words.split()
    commands = COMMANDS[command], *COMMANDS[command].parts
    named = [c for c in commands if c.name == (part or [command])[0]] or commands[:1]
    known = {word for c in named for group in c.choices() for a in group for word in a.words}
    assert set(NAMES['flags'][words]) <= known | {'--help'}


@pytest.mark.parametrize('path', NAMES['paths'])
def test_paths_of_the_documentation(path):
    module, _, name = path.rpartition('.')
    try:
        import_module(path)
    except ModuleNotFoundError:
        assert hasattr(import_module(module), name)
