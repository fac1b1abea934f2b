"""The page of results: it matches its files, and a run's logs produce such a file."""

import json
import re
from pathlib import Path

import pytest
from logs import evaluation, write_log

from .workplace import CONFIG, ROOT, load_tool

tool = load_tool('dev/results')
DOCS = ROOT / 'docs' / 'research'
MARKERS = '# Results\n\n<!-- runs: cells -->\nold\n<!-- end -->\n\nThe end.\n'


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a page that has no runs yet."""
    (tmp_path / 'docs').mkdir()
    (tmp_path / 'docs' / 'results.md').write_text(MARKERS)
    return tmp_path / 'docs'


def finished(work_dir: Path, seed: int, *evaluations: dict) -> Path:
    """A work dir with the parts that the tool reads."""
    log = write_log(work_dir, '20260101_000000', *evaluations)
    text = f'_base_ = {str(CONFIG)!r}\nrandomness = dict(seed={seed})\n'
    log.with_name('config.py').write_text(text)
    # Configs of other runs, or of an earlier start.
    (work_dir / 'another.py').write_text('randomness = dict(seed=7)\n')
    file = log.parents[1] / f'{log.parents[1].name}.log'
    file.write_text('01/01 00:00:00 - mmengine - INFO - Versions: torch 2.9.0, mmdet 3.3.0\n')
    return work_dir


def add(docs: Path, work_dir: Path, name: str) -> int:
    words = ['--add', work_dir, '--name', name, '--cpu-minutes', 2.5, '--machine', 'a processor']
    words += ['--docs', docs]
    return tool.main(list(map(str, words)))


def test_the_committed_page_is_up_to_date():
    page = (DOCS / 'results.md').read_text()
    hint = 'write the page again: python tools/dev/results.py'
    assert page == tool.with_tables(page, DOCS / 'results'), hint


def test_the_committed_files_are_small_and_alike():
    page = (DOCS / 'results.md').read_text()
    for file in (DOCS / 'results').iterdir():
        run = json.loads(file.read_text())
        assert file.name == f'{run["name"]}_{run["seed"]}.json' and file.stat().st_size < 4096
        assert f'<!-- runs: {run["name"].partition("_")[0]} -->' in page


def test_runs_are_added_and_the_text_stays(tmp_path: Path, docs: Path):
    for seed, ap in ((0, 0.2), (1, 0.3)):
        run = finished(tmp_path / f'seed_{seed}', seed, evaluation(2, 0.1), evaluation(4, ap))
        assert add(docs, run, 'cells_ptnt_ti') == 0
    other = finished(tmp_path / 'other', 0, evaluation(2, 0), evaluation(4, 0))
    assert add(docs, other, 'cells_resnet18') == 0
    lines = (docs / 'results.md').read_text().splitlines()
    assert (lines[0], lines[-1]) == ('# Results', 'The end.') and 'old' not in lines
    cells = ['PyramidTNT-Ti', '25.0 (20.0 to 30.0)', '90.0 (90.0 to 90.0)', '2', '10.8 M', '2.5']
    assert f'| {" | ".join(cells)} |' in lines
    assert '| box AP after epoch | 2 | 4 |' in lines and '| PyramidTNT-Ti | 10.0 | 25.0 |' in lines
    assert '| ResNet-18 | 0.0 | 0.0 |' in lines
    run = json.loads((docs / 'results' / 'cells_ptnt_ti_1.json').read_text())
    assert (run['seed'], run['last_logged_iteration'], run['batch_size']) == (1, 7, 4)
    assert run['cpu_minutes'] == 2.5
    assert run['machine'] == {'device': 'a processor', 'versions': 'torch 2.9.0, mmdet 3.3.0'}
    assert run['evaluations'] == {
        '2': {'box AP': 10.0, 'box AP50': 90.0},
        '4': {'box AP': 30.0, 'box AP50': 90.0},
    }


def test_means_are_over_the_data_sets(tmp_path: Path, docs: Path):
    page = docs / 'results.md'
    page.write_text('<!-- means: heads -->\n<!-- end -->\n')
    for name, score, seed in (
        ('cards-heads_ptnt_ti', 0.1, 0),
        ('cards-heads_ptnt_ti', 0.3, 1),
        ('cells-heads_ptnt_ti', 0.6, 0),
        ('cards-heads_resnet18', 0.5, 0),
        ('cells-heads_pvtv2_b0', 0.5, 0),
        ('cards-heads_pvtv2_b0', 0.4, 0),
    ):
        run = finished(tmp_path / f'{name}_{seed}', seed, evaluation(2, score))
        assert add(docs, run, name) == 0
    lines = page.read_text().splitlines()
    assert '| network | `cards` | `cells` | mean |' in lines
    assert '| PyramidTNT-Ti | 20.0 (10.0 to 30.0) | 60.0 | 40.0 |' in lines
    assert '| PVTv2-B0 | 40.0 | 50.0 | 45.0 |' in lines
    assert 'ResNet-18' not in page.read_text()  # on one set only


def test_a_data_set_without_runs_says_so(docs: Path):
    assert tool.main(['--docs', str(docs)]) == 0
    assert 'No run has finished yet.' in (docs / 'results.md').read_text()


def test_what_cannot_be_evaluated_is_left_out(tmp_path: Path, docs: Path):
    line = {**evaluation(4, 0.2), 'coco/bbox_mAP_50': -1}
    assert add(docs, finished(tmp_path / 'run', 0, line), 'cells_ptnt_ti') == 0
    run = json.loads((docs / 'results' / 'cells_ptnt_ti_0.json').read_text())
    assert run['evaluations'] == {'4': {'box AP': 20.0}}


def test_the_minutes_need_a_machine(tmp_path: Path, docs: Path, capsys):
    words = ['--add', tmp_path, '--name', 'cells_ptnt_ti', '--cpu-minutes', 2.5, '--docs', docs]
    assert tool.main(list(map(str, words))) == 1
    assert '--machine' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('name', 'evaluations', 'message'),
    [
        ('cells_ptnt', [evaluation(2, 0.1)], "one of cells_ptnt_ti, .*: got 'cells_ptnt'"),
        ('cells_ptnt_ti', [], 'no training log'),
    ],
)
def test_what_cannot_be_added(tmp_path, docs, capsys, name, evaluations, message):
    work_dir = tmp_path / 'run'
    if evaluations:
        finished(work_dir, 0, *evaluations)
    assert add(docs, work_dir, name) == 1
    assert re.search(message, capsys.readouterr().err)
    assert (docs / 'results.md').read_text() == MARKERS
