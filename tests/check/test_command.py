"""The command line: its flags, what it prints, and its exit status."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from repository import ROOT

from ptnt_mm.models import PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Severity, error, note, of_kind, ok, summary, warning
from ptnt_mm.workbench.check import inspection
from ptnt_mm.workbench.check.inspection import check_before_testing, check_before_training
from ptnt_mm.workbench.cli.main import run as run_command
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.safeguards import safeguard_names
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import NOT_COMPLETED, TRAIN_SET, Demo

HEAD = 'model.bbox_head.num_classes'


def _status(demo: Demo, *args: object) -> int:
    """Run the check from a command line; return its exit status."""
    options = [f'{key}={value}' for key, value in demo.settings().items()]
    args = (demo.name, *args, '--cfg-options', *options)
    return run_command('check', [str(arg) for arg in args])


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        (HEAD, 80, 'model.bbox_head.num_classes: is 80, the data has 4 classes'),
        (TRAIN_SET + 'ann_file', 'absent.json', 'absent.json does not exist'),
        (TRAIN_SET + 'data_root', 'gone/at/all', 'gone does not exist; expected in it: at/all/ann'),
        (TRAIN_SET + 'metainfo.classes', 'ball', "a single class needs its comma: classes=('ball'"),
    ],
)
def test_errors_make_the_exit_status_1(demo: Demo, capsys, key: str, value: object, words: str):
    demo.options[key] = value
    assert _status(demo, '--quick') == 1
    output = capsys.readouterr().out
    assert words in ' '.join(output.split()) and '1 error' in output.splitlines()[-1]


def test_what_is_right_is_one_line_and_equal_advice_is_given_once():
    advice = 'spell them alike'
    by_subject = {
        'files': [ok('train', 'there')],
        'names': [warning('train', 'differs', advice), warning('val', 'differs', advice)],
        'boxes': [error('train', 'odd'), ok('val', 'sound')],
        'model': [ok('model', 'built')],
        'length': [note('length', 'short')],
    }
    assert list(summary(by_subject)) == [
        '  ok       files, model',
        '  note     length: short',
        '  warning  train: differs',
        '  warning  val: differs',
        '           spell them alike',
        '  error    train: odd',
    ]


def test_findings_as_json(demo: Demo, capsys):
    demo.options[HEAD] = 80
    assert _status(demo, '--quick', '--json', '-') == 1
    printed = capsys.readouterr()
    (found,) = (one for one in json.loads(printed.out) if one['severity'] == 'error')
    assert found['where'] == HEAD and 'has 4 classes' in found['what']
    assert found['what'] in printed.err and '1 error' in printed.err.splitlines()[-1]


def test_warnings_alone_are_no_failure(demo: Demo, capsys):
    assert _status(demo, '--quick', '--verbose', '--gpus', 4) == 0
    output = capsys.readouterr().out
    assert '4 images x 4 processes x 1 step = 16' in output
    assert 'Learning rate: 0.001 is for batch 4; --auto-scale-lr would make it 0.004' in output
    assert output.splitlines()[-1] == '0 errors, 1 warning'


def test_pretrained_weights_are_read(demo: Demo, tmp_path: Path, capsys):
    file = tmp_path / 'small.pth'
    torch.save(PyramidTNT('small', out_indices=(0,)).state_dict(), file)
    assert _status(demo, '--pretrained', file) == 1
    assert 'weights of a different shape' in capsys.readouterr().out


def test_the_function_takes_pretrained_weights_too_and_leaves_the_config_alone(demo: Demo):
    config = demo.config()
    before = config.pretty_text
    found = inspection.check(config, thorough=False, pretrained=Path('absent.pth'))
    assert any('absent.pth' in str(finding) for finding in found)
    assert config.pretty_text == before


def test_the_function_refuses_a_config_that_is_not_complete(demo: Demo):
    config = demo.config()
    config.optim_wrapper = None
    with pytest.raises(UserError, match='lacks optim_wrapper'):
        inspection.check(config)


def test_a_pretrained_file_that_is_missing(demo: Demo, capsys):
    assert _status(demo, '--quick', '--pretrained', 'absent.pth') == 1
    output = capsys.readouterr()
    assert 'absent.pth' in output.err and 'training starts from absent.pth' not in output.out


@pytest.mark.parametrize('number', ['0', '-1', 'two'])
def test_a_number_of_gpus_that_is_none(number: str, capsys):
    with pytest.raises(SystemExit, match='2'):
        run_command('check', ['config.py', '--gpus', number])
    assert f"'{number}' is not an integer from 1" in capsys.readouterr().err


def test_training_prints_warnings_and_stops_at_errors(demo: Demo):
    assert check_before_training(demo.view()) == []
    demo.edit('train', lambda content: content['annotations'][1].update(bbox=[5, 5, 900, 20]))
    (line,) = check_before_training(demo.view())
    assert line.startswith('train: 1 of ')
    demo.options[HEAD] = 80
    with pytest.raises(UserError, match=r'num_classes: is 80'):
        check_before_training(demo.view())


@pytest.mark.parametrize(
    ('path', 'value', 'words'),
    [
        ('train_cfg.val_interval', 0, r'train_cfg\.val_interval: is 0, expected'),
        ('optim_wrapper.optimizer.lr', 'abc', "Learning rate: 'abc' is not a number above 0"),
    ],
)
def test_training_is_stopped_by_its_recipe(demo: Demo, path: str, value: object, words: str):
    """Before data is read."""
    demo.options[path] = value
    demo.file('train').unlink()
    with pytest.raises(UserError, match=words) as refused:
        check_before_training(demo.view())
    assert 'instances_train.json' not in str(refused.value)


def test_the_errors_of_one_check_can_be_overruled(demo: Demo):
    demo.edit('train', lambda content: content['annotations'][1].update(bbox=[5, 5, -9, 9]))
    with pytest.raises(UserError, match=r'`safeguards\.boxes=None`$'):
        check_before_training(demo.view())
    demo.options['safeguards.boxes'] = None
    (line,) = check_before_training(demo.view())
    assert '[5, 5, -9, 9]' in line and 'safeguards.boxes=None' in line
    assert _status(demo, '--quick') == 0
    # All others still stop it.
    demo.options[HEAD] = 80
    with pytest.raises(UserError, match=r'`safeguards\.heads=None`$'):
        check_before_training(demo.view())


def test_what_stops_every_run_cannot_be_overruled(demo: Demo):
    demo.options['model.backbone.out_indices'] = [9]
    with pytest.raises(UserError) as refused:
        check_before_training(demo.view())
    assert 'out_indices' in str(refused.value) and 'safeguards' not in str(refused.value)


def test_nobody_is_advised_to_go_on_with_weights_that_the_network_refuses(
    demo: Demo, tmp_path: Path
):
    torch.save({'conv.weight': torch.ones(1)}, tmp_path / 'x.pth')
    init = dict(type='Pretrained', checkpoint=str(tmp_path / 'x.pth'))
    demo.options['model.backbone.init_cfg'] = init
    with pytest.raises(UserError) as refused:
        check_before_training(demo.view())
    assert 'lacks all' in str(refused.value) and 'safeguards' not in str(refused.value)


def test_nobody_is_advised_to_go_on_without_files(demo: Demo):
    demo.file('val').unlink()
    demo.edit('train', lambda content: content['annotations'][1].update(bbox=[5, 5, -9, 9]))
    with pytest.raises(UserError) as refused:
        check_before_training(demo.view())
    named = str(refused.value)
    assert 'instances_val.json' in named and '-9' in named and 'safeguards' not in named


def test_the_check_before_a_test_can_be_overruled(demo: Demo):
    demo.options['test_evaluator.metric_items'] = ['mAP_90']
    with pytest.raises(UserError, match='mAP_90') as refused:
        check_before_testing(demo.view())
    # The test itself would stop there, too, but its check may be wrong.
    assert 'safeguards' not in str(refused.value)
    demo.options['safeguards.evaluated_image'] = None
    lines = check_before_testing(demo.view())
    assert any('mAP_90' in line and 'safeguards.evaluated_image=None' in line for line in lines)


@pytest.mark.parametrize(
    ('stated', 'names'),
    [
        (dict(boxs=None), ["'boxs'", "'boxes'"]),
        (dict(StopAtNanHook=None), ["'StopAtNaNHook'"]),
        (dict(boxes=False), ['safeguards.boxes', 'False', 'None']),
        ('boxes', ["'boxes'", 'dict(']),
    ],
)
def test_what_safeguards_cannot_be_is_an_error(demo: Demo, stated: object, names: list[str]):
    config = demo.config()
    config.safeguards = stated
    with pytest.raises(UserError) as refused:
        check_before_training(ConfigView(config))
    assert all(name in str(refused.value) for name in names)


class Named(inspection.Inspection):
    """Keeps the names of its checks, and runs none."""

    def run(self, subject: str, *quick: object, thorough: object = ()) -> None:
        self.findings.append(inspection.check_name(subject))


def test_every_check_has_a_name(demo: Demo):
    found = set()
    for scope in filter(find_spec, HOSTS):  # mmrotate is for the forks
        config = demo.config()
        config.default_scope = scope
        named = Named(ConfigView(config), ('train', 'val', 'test'))
        named.check_all()
        found |= {*named.findings}
    assert found == {*inspection.CHECKS}


@pytest.mark.parametrize(
    ('page', 'names'),
    [('check.md', inspection.CHECKS), ('reliability.md', safeguard_names())],
)
def test_the_docs_name_what_can_be_left_out(page: str, names: list[str]):
    text = (ROOT / 'docs' / page).read_text()
    assert [name for name in names if f'`{name}`' not in text] == []


class Odd:
    """No number: a check that divides by it fails."""

    def __rtruediv__(self, other: float) -> None:
        raise ZeroDivisionError


def test_a_check_that_fails_does_not_pass_and_does_not_stop_training(demo: Demo):
    demo.options['auto_scale_lr.base_batch_size'] = Odd()
    (failed,) = of_kind(demo.findings(), Severity.ERROR)
    assert f'{NOT_COMPLETED}: ZeroDivisionError' in failed.what
    (line,) = check_before_training(demo.view())
    assert NOT_COMPLETED in line
