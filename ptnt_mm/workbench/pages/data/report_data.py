"""Write one page about the data of a config, for ``ptnt new`` and ``ptnt report --data``."""

import shlex
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.deploy.decoding import large_images_expected
from ptnt_mm.utils.atomic_files import check_new
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import from_here
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.work_dir import PROJECT_WORK_DIR, find_work_dir

DATA_PAGE = 'data.html'

_PACKAGES = 'jinja2 opencv-python-headless'


@large_images_expected()
def report_data(config: Config, out: Path | str | None = None, overwrite: bool = False) -> Path:
    """Write a page about the data of a config, as ``ptnt report --data`` does.

    The page is ``data.html`` in the folder of a project, or in the work dir of another config,
    unless ``out`` names it. A part of it that cannot be made, for example because a host is not
    installed, is replaced by the reason.

    Args:
        config: Of any host. It stays as it is.
        out: The page; by default WORK_DIR/report.html or PROJECT/data.html, where an earlier page
            is replaced.
        overwrite: If True, replace the file of ``out`` if it exists.

    Returns:
        The page.

    Raises:
        UserError: if files of the training data are missing, if the page exists and is not to be
            replaced, or if it cannot be written.
    """
    try:
        from ptnt_mm.workbench.pages.data.content import data_content
        from ptnt_mm.workbench.pages.page import write_page
    except ModuleNotFoundError as error:
        raise UserError(
            f'{error}: a page about data needs more packages: pip install {_PACKAGES}'
        ) from error
    view = ConfigView(config)
    view.require_files(['train'])
    folder, source = _place(config)
    default = folder / DATA_PAGE
    page = default if out is None else Path(out)
    if page != default:
        check_new(page, overwrite)
    write_page(
        'data.html',
        page,
        title=f'Data of {Path(source).stem}',
        generator='ptnt report --data',
        command=shlex.join(['ptnt', 'report', '--data', source]),
        **data_content(view, folder),
    )
    return page


def _place(config: Config) -> tuple[Path, str]:
    """The folder of the page, and what the user calls the config: a project or a file."""
    work_dir = find_work_dir(config)
    if work_dir.name == PROJECT_WORK_DIR:
        return work_dir.parent, from_here(work_dir.parent)
    return work_dir, from_here(config.filename or work_dir)
