"""The commands as functions of Python."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from mmengine.config import Config

from ptnt_mm import api
from ptnt_mm.utils.errors import UserError


def _testable() -> Config:
    """A config that is complete until its model is built."""
    return Config(dict(model={}, test_dataloader={}, test_cfg={}, test_evaluator=[]))


@pytest.mark.parametrize('kind', [str, Path])
@pytest.mark.parametrize(
    ('call', 'words'),
    [
        (lambda path: api.infer(None, path('a.onnx'), path('in'), path('in')), '`out=in`'),
        (lambda path: api.report(path('absent'), path('page.html')), 'absent'),
        (lambda path: api.report([path('absent')]), 'absent'),
        (lambda path: api.test(_testable(), path('file'), path('w'), out=path('a.txt')), 'a.txt'),
        (
            lambda path: api.test(_testable(), path('file'), path('w'), show_dir=path('file')),
            '`show_dir=',
        ),
        (lambda path: api.export(Config(), path('file'), path('a.txt')), 'a.txt'),
        (
            lambda path: api.visualize(
                [(_testable(), path('file'))], [path('absent.png')], path('w')
            ),
            'absent.png',
        ),
        (lambda path: api.create_project(path('in'), path('in/new')), 'in/new'),
        (lambda path: api.read_config(path('absent.py')), 'absent.py'),
    ],
)
def test_paths_may_be_text(
    tmp_path: Path, monkeypatch, call: Callable, words: str, kind: Callable[[str], Path | str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'in').mkdir()
    (tmp_path / 'file').write_bytes(b'\0' * 600)
    with pytest.raises(UserError, match=words):
        call(kind)


def test_editors_see_the_same_functions():
    imports = [
        n for n in ast.walk(ast.parse(Path(api.__file__).read_text())) if hasattr(n, 'names')
    ]
    seen = {n.names[0].name: n.module for n in imports if n.module.startswith('ptnt_mm.')}
    assert seen == {name: getattr(api, name).__module__ for name in api.__all__}
    assert {*api.__all__} <= {*dir(api)}
