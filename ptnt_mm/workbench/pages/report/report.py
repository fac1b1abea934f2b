"""Write one page about training runs, for ``ptnt report``."""

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ptnt_mm.utils.atomic_files import check_new
from ptnt_mm.utils.console import fitted, for_user
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.workbench.engine.test import test
from ptnt_mm.workbench.engine.work_dir import work_dir_of
from ptnt_mm.workbench.pages.report.training_run import TrainingRun, read_run

_PACKAGES = 'altair jinja2 pycocotools scikit-learn vl-convert-python'  # the extra `vis`


def report(
    work_dirs: Path | str | Sequence[Path | str],
    out: Path | str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a page as ``ptnt report`` does.

    Predictions in a work dir are used if they are newer than its last checkpoint. Otherwise that
    checkpoint is evaluated first, in a temporary folder: nothing but the page is written.

    Args:
        work_dirs: The work dirs of the runs, or folders of projects: one, or several to compare.
            Duplicates are ignored.
        out: The page; by default WORK_DIR/report.html or PROJECT/data.html, where an earlier page
            is replaced.
        overwrite: If True, replace the file of ``out`` if it exists.

    Returns:
        The page.

    Raises:
        UserError: for everything that the user can correct.
    """
    try:
        from ptnt_mm.workbench.pages.page import write_page
        from ptnt_mm.workbench.pages.report.charts import drawing_code
        from ptnt_mm.workbench.pages.report.content import page_content
    except ModuleNotFoundError as error:
        raise UserError(
            f'{error}: a report needs more packages: pip install {_PACKAGES}'
        ) from error
    if isinstance(work_dirs, (Path, str)):
        work_dirs = [work_dirs]
    named = list(dict.fromkeys(map(Path, work_dirs)))
    work_dirs = [work_dir_of(folder) for folder in named]
    default = work_dirs[0] / 'report.html'
    page = default if out is None else Path(out)
    if page != default:
        check_new(page, overwrite)
    names = [path.resolve().name for path in named]
    if len(set(names)) < len(names):
        names = list(map(str, named))
    runs = [read_run(work_dir, name) for work_dir, name in zip(work_dirs, names, strict=True)]
    if not os.access(page.absolute().parent, os.W_OK) and page.parent.is_dir():
        # Before an evaluation, which may take long.
        raise UserError(f'{page.parent} cannot be written to: choose another file with `out`')
    with TemporaryDirectory(prefix='ptnt_report_') as scratch:
        reports, notes = _reports(runs, Path(scratch))
        # The galleries read the predictions again.
        content = page_content(runs, reports, notes)
    for gallery in filter(None, content['galleries']):
        faults = [image['fault'] for image in gallery['images'] if 'fault' in image]
        if faults:
            more = f', and {len(faults) - 1} more: see the page' if faults[1:] else ''
            print(f'{faults[0]}{more}')
    content |= dict(title=f'Training report: {", ".join(names)}', generator='ptnt report')
    write_page('report.html', page, drawing_code=drawing_code(), **content)
    return page


def _reports(runs: Sequence[TrainingRun], scratch: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The evaluated predictions of runs, and why there are none, both by the names of the runs."""
    reports, notes = {}, {}
    for number, run in enumerate(runs):
        try:
            reports[run.name] = _report(run, scratch / str(number))
            split = f'{run.split} split: {reports[run.name].test_split}'
            _say(run, f'evaluated on the {split}')
        except UserError as error:
            # Curves and config are worth a page too.
            notes[run.name] = f'No scores and no images: {for_user(str(error))}'
            _say(run, notes[run.name])
    return reports, notes


def _say(run: TrainingRun, text: str) -> None:
    print(fitted(f'{run.work_dir}: {text}', sys.stdout))


def _report(run: TrainingRun, scratch: Path) -> Any:
    if run.has_predictions():
        return run.read_report()
    if run.checkpoint is None:
        raise UserError('there are neither predictions nor a checkpoint')
    _say(run, f'evaluating {run.checkpoint.name}: there are no newer predictions')
    # Predictions, and the logs of the evaluation next to them.
    evaluated = replace(run, predictions=scratch)
    try:
        test(evaluated.evaluation_config(), str(run.checkpoint), scratch / 'test')
    except UserError:
        raise
    except Exception as error:  # a damaged image can make a host raise anything
        traceback.print_exc()
        raise UserError(f'its evaluation failed: {one_line(error, named=True)}') from error
    if not evaluated.has_predictions():
        raise UserError('the evaluation has no predictions for any image')
    return evaluated.read_report()
