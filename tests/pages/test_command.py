"""The command: names of runs, and pages of runs that have no scores."""

import json
import sys
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from mmengine.config import Config
from repository import contents

from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.pages.report import report as reporting

from .made_runs import age, make_detector, make_segmenter, results
from .test_training_run import save_checkpoint


def test_without_predictions_and_weights_there_are_curves(tmp_path: Path, capsys):
    work_dir = make_detector(tmp_path, 'run')
    (work_dir / 'predictions.bbox.json').unlink()
    assert run('report', [str(work_dir)]) == 0
    said = 'No scores and no images: there are neither predictions nor a checkpoint'
    out = capsys.readouterr().out
    assert f'{work_dir}: {said}' in out and f'Done. Page: {work_dir}/report.html' in out
    page = (work_dir / 'report.html').read_text()
    assert said in page and 'Learning rate' in page and 'id="detections"' not in page


def test_the_split_that_is_evaluated_is_printed_first_and_on_the_page(tmp_path: Path, capsys):
    work_dir = make_detector(tmp_path, 'run')
    assert run('report', [str(work_dir)]) == 0
    split = f'test split: {tmp_path}/data/val.json, 2 images'
    assert capsys.readouterr().out.startswith(f'{work_dir}: evaluated on the {split}\n')
    assert f'<td>{split}</td>' in (work_dir / 'report.html').read_text()


@pytest.mark.parametrize(
    ('settings', 'name'),
    [
        ('val_dataloader = test_dataloader', 'validation'),
        ("val_dataloader = dict(dataset=dict(data_root='/elsewhere', ann_file='x.json'))", 'test'),
        ('train_dataloader = test_dataloader', 'training'),
    ],
)
def test_the_split_that_is_evaluated_has_its_name(settings: str, name: str, tmp_path: Path, capsys):
    work_dir = make_detector(tmp_path, 'run')
    (config,) = work_dir.glob('*/vis_data/config.py')
    config.write_text(f'{config.read_text()}{settings}\n')
    assert run('report', [str(work_dir)]) == 0
    assert f'evaluated on the {name} split: {tmp_path}/data/val.json' in capsys.readouterr().out


class Evaluation:
    """Stands in for the evaluation: writes predictions where the config tells it to."""

    def __init__(self):
        self.folders = []
        self.error = None

    def __call__(self, config: Config, checkpoint: str, work_dir: Path) -> None:
        if self.error is not None:
            raise self.error
        self.folders.append(work_dir)
        (work_dir / '20260203_040506').mkdir(parents=True)
        evaluator = config.test_evaluator
        if evaluator.type == 'CocoMetric':
            Path(f'{evaluator.outfile_prefix}.bbox.json').write_text(json.dumps(results('bbox')))
            return
        Path(evaluator.output_dir).mkdir(parents=True)
        for file in Path(config.work_dir, 'predictions').glob('*.png'):
            copyfile(file, Path(evaluator.output_dir, file.name))


@pytest.fixture
def evaluation(monkeypatch) -> Evaluation:
    evaluation = Evaluation()
    monkeypatch.setattr(reporting, 'test', evaluation)
    return evaluation


@pytest.mark.parametrize('stale', [True, False])
@pytest.mark.parametrize('kind', ['detector', 'segmenter'])
def test_a_work_dir_is_only_read(kind: str, stale: bool, tmp_path: Path, evaluation: Evaluation):
    if kind == 'detector':
        work_dir = make_detector(tmp_path, 'run')
    else:
        maps = np.zeros((2, 20, 30), np.uint8)
        maps[:, 5:] = 1
        work_dir = make_segmenter(tmp_path, 'run', maps, maps)
    save_checkpoint(work_dir)
    (work_dir / 'last_checkpoint').write_text('epoch_2.pth')
    for file in work_dir.rglob('*.json' if kind == 'detector' else '*.png'):
        if stale and 'vis_data' not in file.parts:
            age(file, 100)
        elif kind == 'detector' and 'vis_data' not in file.parts:
            file.unlink()
    if kind == 'segmenter' and not stale:
        age(work_dir / 'predictions' / '0.png', 100)
    (config,) = work_dir.glob('*/vis_data/config.py')
    evaluators = f'test_evaluator = [dict(type="Dump", out="{work_dir}/x.pkl"), test_evaluator]\n'
    config.write_text(config.read_text() + evaluators)
    before = contents(work_dir)
    assert run('report', [str(work_dir)]) == 0
    after = contents(work_dir)
    assert 'No scores' not in (work_dir / 'report.html').read_text()
    assert after.pop('report.html') and after == before
    (folder,) = evaluation.folders
    assert not folder.exists() and not folder.is_relative_to(work_dir)


def test_a_folder_that_cannot_be_written_to_is_named_before_an_evaluation(
    tmp_path: Path, monkeypatch, capsys, evaluation: Evaluation
):
    work_dir = make_detector(tmp_path, 'run')
    (work_dir / 'predictions.bbox.json').unlink()
    save_checkpoint(work_dir)
    # Root may write everywhere.
    monkeypatch.setattr('os.access', lambda folder, mode: Path(folder) != work_dir)
    assert run('report', [str(work_dir)]) == 1 and not evaluation.folders
    assert f'{work_dir} cannot be written to' in capsys.readouterr().err
    assert run('report', [str(work_dir), '--out', str(tmp_path / 'page.html')]) == 0
    assert evaluation.folders and not (work_dir / 'report.html').exists()


def test_files_of_others_are_kept(tmp_path: Path, capsys):
    work_dir, notes = make_detector(tmp_path, 'run'), tmp_path / 'notes.html'
    notes.write_text('mine')
    words = [str(work_dir), '--out', str(notes)]
    assert run('report', words) == 1 and notes.read_text() == 'mine'
    assert f'{notes} exists: choose another name, or pass --overwrite' in capsys.readouterr().err
    assert run('report', [*words, '--overwrite']) == 0 and 'Training report' in notes.read_text()
    # The page in the work dir belongs to the command.
    page = work_dir / 'report.html'
    page.write_text('of last week')
    assert run('report', [str(work_dir)]) == 0 and 'Training report' in page.read_text()


def test_images_that_cannot_be_read_are_one_line(tmp_path: Path, capsys):
    work_dir, data = make_detector(tmp_path, 'run'), tmp_path / 'data'
    for image in (1, 2):
        (data / f'{image}.jpg').unlink()
    assert run('report', [str(work_dir)]) == 0
    said = f'{data}/2.jpg cannot be read: No such file or directory'
    assert f'{said}, and 1 more: see the page\n' in capsys.readouterr().out
    page = (work_dir / 'report.html').read_text()
    assert f'<p>{said}</p>' in page and f'<p>{data}/1.jpg cannot be read' in page


def test_an_evaluation_that_fails_costs_the_scores_alone(
    tmp_path: Path, capsys, evaluation: Evaluation
):
    trace = 'Traceback ...\nOSError: 7.jpg is truncated\n'
    evaluation.error = OSError(f'Caught OSError in DataLoader worker process 0.\n{trace}')
    bad, good = (make_detector(tmp_path, name) for name in ('bad', 'good'))
    (bad / 'predictions.bbox.json').unlink()
    save_checkpoint(bad)
    assert run('report', [str(bad), str(good)]) == 0
    printed, page = capsys.readouterr(), (bad / 'report.html').read_text()
    said = 'No scores and no images: its evaluation failed: OSError: 7.jpg is truncated'
    assert f'{bad}: {said}\n' in printed.out and 'Traceback' in printed.err
    assert said in page and 'id="detections"' in page, 'those of the other run'


def test_two_runs_of_one_name_are_distinguished(tmp_path: Path):
    for part in ('a', 'b'):
        (tmp_path / part).mkdir()
    runs = [make_detector(tmp_path / part, 'run') for part in ('a', 'b')]
    # A duplicate counts once.
    assert run('report', [str(runs[0]), *map(str, runs), '--out', str(tmp_path / 'page.html')]) == 0
    page = (tmp_path / 'page.html').read_text()
    assert f'<title>Training report: {runs[0]}, {runs[1]}</title>' in page


def test_a_folder_that_is_no_work_dir(tmp_path: Path, capsys):
    assert run('report', [str(tmp_path)]) == 1
    assert f'error: {tmp_path} contains no training log' in capsys.readouterr().err


def test_packages_that_are_not_there(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'altair', None)
    for module in (
        'pages.report.report',
        'pages.report.content',
        'pages.report.charts',
        'pages.page',
    ):
        monkeypatch.delitem(sys.modules, f'ptnt_mm.workbench.{module}', raising=False)
    assert run('report', [str(make_detector(tmp_path, 'run'))]) == 1
    assert (
        'a report needs more packages: pip install altair jinja2 pycocotools scikit-learn vl-conv'
        in capsys.readouterr().err
    )
