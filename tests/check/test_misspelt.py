"""Keys, types and values that nothing reads, and strides that are not those of the maps."""

import copy
import random
from collections.abc import Iterator

import pytest
from mmengine.config import Config

from ptnt_mm.check.inspection import Inspection, check_before_training
from ptnt_mm.check.misspelt import check_parameter_names, check_spelling
from ptnt_mm.check.strides import check_strides
from ptnt_mm.check.trial import build_model
from ptnt_mm.engine.build import import_host
from ptnt_mm.engine.config import READ_KEYS, apply_options, read_config
from ptnt_mm.engine.constructors import classes_named
from ptnt_mm.errors import UserError
from ptnt_mm.finding import Severity

from .spoilt import Demo, MaskDemo, counted

# Names that users choose, paths that the check of files looks for, and settings of no effect here.
FREE = ('metainfo', 'data_root', 'ann_file', 'data_prefix', 'custom_keys', '_scope_', 'prefix', 'name')
ABSENT = ('work_dir', 'load_from', 'resume', 'launcher')


def _sites(value: object, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Every place of a config where something can be misspelt, and what: a key or a value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in (*FREE, *ABSENT) or (not path and key not in READ_KEYS):
                continue
            if key != 'type':
                yield (*path, key), 'key'
            yield from _sites(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _sites(inner, (*path, i))
    elif isinstance(value, str) and value.isidentifier() and len(value) > 3:
        yield path, 'type' if path[-1] == 'type' else 'value'


def _misspelt(word: str, chance: random.Random) -> str:
    """A word with a letter dropped, doubled, or swapped with the next."""
    i = chance.choice([i for i in range(len(word) - 1) if word[i : i + 2].isalpha()])
    ways = [word[:i] + word[i + 1 :], word[: i + 1] + word[i:]]
    if word[i] != word[i + 1]:
        ways.append(word[:i] + word[i + 1] + word[i] + word[i + 2 :])
    return chance.choice(ways)


def spoil(config: Config, path: tuple, kind: str, chance: random.Random) -> str | None:
    """Misspell one thing; what it was and is, or None if the result is a name as well."""
    inner = config
    for step in path[:-1]:
        inner = inner[step]
    word = path[-1] if kind == 'key' else inner[path[-1]]
    if not any(word[i : i + 2].isalpha() for i in range(len(word) - 1)):
        return None
    wrong = _misspelt(word, chance)
    if classes_named(wrong, config.default_scope):
        return None
    if kind == 'key':
        inner[wrong] = inner.pop(word)
    else:
        inner[path[-1]] = wrong
    return f'{".".join(map(str, path))} ({kind}): {wrong}'


def spoilt_configs(config: Config, number: int, seed: int) -> Iterator[tuple[str, Config]]:
    """Copies of a config with something misspelt in each, from all sections in turn."""
    chance = random.Random(seed)
    sections: dict[str, list] = {}
    for path, kind in _sites(config._to_lazy_dict()):
        sections.setdefault(path[0], []).append((path, kind))
    turn = 0
    while number:
        places = sections[sorted(sections)[turn % len(sections)]]
        turn += 1
        spoilt = copy.deepcopy(config)
        what = spoil(spoilt, *chance.choice(places), chance)
        if what is not None:
            number -= 1
            yield what, spoilt


def _errors(config: Config) -> list[str]:
    return [str(one) for one in check_spelling(config) if one.severity is Severity.ERROR]


@pytest.mark.parametrize('name', ['demo_retinanet_ptnt_ti', 'demo_semantic_fpn_ptnt_ti'])
def test_slips_all_over_a_config_are_found(name: str):
    pytest.importorskip('mmseg')
    config = read_config(name)
    import_host(config.default_scope)
    assert _errors(config) == []
    missed = [what for what, spoilt in spoilt_configs(config, 40, 0) if not _errors(spoilt)]
    assert missed == []
