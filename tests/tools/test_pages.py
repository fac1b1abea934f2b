"""The code of README and docs: run unchanged, or checked if its page gives a reason not to."""

import json
import re
from pathlib import Path

import pytest
from manual import PAGES, ROOT, Block, blocks, has_indented_blocks, inline_commands, name

from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.config.zoo import config_names

from .workplace import Workplace

DIRECTIVES = ('{toctree}', '{eval-rst}')
# The Chinese README has the code of the English one, see test_links.py.
RUNNING = [
    page
    for page in PAGES
    if page.name != 'README.zh-CN.md' and any(b.is_code and not b.reason for b in blocks(page))
]
TARGETS = re.search(r'^\.PHONY: (.+)$', (ROOT / 'Makefile').read_text(), re.MULTILINE)[1].split()

MODULE = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
"""

# An unknown flag comes before --help, and nothing is run.
PARSE = """
import contextlib, io, json, runpy, sys
for words in json.load(open(sys.argv[1])):
    said = io.StringIO()
    sys.argv = [*words, '--help']
    module = runpy.run_module if words[0] == 'ptnt_mm' else runpy.run_path
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            module(words[0], run_name='__main__')
    except SystemExit as end:
        if end.code:
            print(*words, '->', said.getvalue().splitlines()[-1])
"""


def script_and_arguments(words: list[str]) -> list[str] | None:
    """The script or module of one of our commands, and its arguments; None for other commands."""
    match words:
        case ['python', '-m', module, *rest] if module == 'ptnt_mm':
            return [module, *rest]
        case ['python', script, *rest] if script.startswith('tools/'):
            return [str(ROOT / script), *rest]
        case ['ptnt', *rest]:
            return ['ptnt_mm', *rest]
        case ['torchrun', *rest] if 'ptnt_mm' in rest:
            return rest[rest.index('ptnt_mm') :]
        case ['torchrun', *rest]:
            first = next(i for i, word in enumerate(rest) if word.startswith('tools/'))
            return [str(ROOT / rest[first]), *rest[first + 1 :]]
    return None


def run(workplace: Workplace, block: Block) -> str:
    """Run a block and return its output; it may fail if the page shows that."""
    check = block.output is None
    if block.language == 'python':
        script = workplace.folder / 'page.py'
        script.write_text(block.text)
        return workplace.run(script, check=check).stdout
    output = ''
    for words in block.commands():
        command = script_and_arguments(words)
        assert command, f'{" ".join(words)}: say above the block why it is not run'
        script = Path(command[0])
        if not script.is_file():
            script, command = workplace.folder / 'module.py', [None, *command]
            script.write_text(MODULE)
        output += workplace.run(script, *command[1:], check=check).stdout
    return output


@pytest.mark.parametrize('page', RUNNING, ids=name)
def test_code_runs(workplace: Workplace, page: Path):
    """The output below a block is printed, line for line; ``...`` matches anything."""
    for block in blocks(page):
        if block.is_code and not block.reason:
            printed = run(workplace, block)
            for line in filter(str.strip, (block.output or '').splitlines()):
                pattern = re.escape(line.strip()).replace(r'\.\.\.', '.*')
                assert re.search(f'^ *{pattern} *$', printed, re.MULTILINE), (line, printed)


@pytest.mark.parametrize('page', PAGES, ids=name)
def test_training_on_one_gpu_scales_the_learning_rate(page: Path):
    """Unless a config's batch is the one that its learning rate is for."""
    for block in blocks(page):
        for words in block.commands() if block.language == 'shell' else ():
            config = Path(words[2]).stem if words[:2] == ['ptnt', 'train'] else ''
            # Those for DOTA can be read on the forks alone.
            if config in config_names() and not config.endswith('_dota'):
                view = ConfigView(read_config(config))
                batch = view.train.batch_size * view.accumulated_steps
                is_right = view.auto_scale_lr['base_batch_size'] == batch
                assert is_right or {'--auto-scale-lr', '--launcher'} & {*words}, words


@pytest.mark.parametrize('page', PAGES, ids=name)
def test_blocks_say_what_they_are(page: Path):
    assert not has_indented_blocks(page), 'fence the block, with a language'
    for block in blocks(page):
        known = block.is_code or block.language in ('text', 'json', *DIRECTIVES)
        assert known, f'```{block.language}: write shell, python or text:\n{block.text}'
        if block.is_code and block.mark:
            assert block.mark.startswith('not run: ') and len(block.reason) > 5, block.mark
            for file in re.findall(r'tests/[\w/]+(?:\.py)?', block.reason):
                assert (ROOT / file).exists(), f'{name(page)}: there is no {file}'


def test_flags_and_files_exist(workplace: Workplace):
    """Blocks that are not run use existing scripts, configs, targets and flags."""
    commands = []
    for page in PAGES:
        fenced = (w for b in blocks(page) if b.language == 'shell' for w in b.commands())
        for words in (*fenced, *inline_commands(page)):
            for word in words:
                if re.match(r'(configs|tests|tools)/', word):
                    assert (ROOT / word).exists(), f'{name(page)}: there is no {word}'
            if words[0] == 'make':
                assert set(words[1:]) <= {*TARGETS, *(w for w in words if '=' in w)}, words
            commands.append(script_and_arguments(words))
    listing = workplace.folder / 'commands.json'
    listing.write_text(json.dumps([command for command in commands if command]))
    script = workplace.folder / 'parse.py'
    script.write_text(PARSE)
    assert workplace.run(script, listing).stdout == ''
