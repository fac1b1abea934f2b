"""The folder that a project is made from, and the folder that it is made in; needs no torch."""

import os
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.tree import require_folder


def settings_file(data: Path) -> Path | None:
    """YOLO's data.yaml, if that is how a data set is given."""
    return data if data.suffix in ('.yaml', '.yml') and data.is_file() else None


def data_folder(data: Path) -> Path:
    """The folder of a data set, which may be given by YOLO's data.yaml.

    Raises:
        UserError: if there is no such folder, or the file describes images elsewhere.
    """
    if settings_file(data) is not None:
        from ptnt_mm.workbench.data.formats.yolo import data_set_of

        return data_set_of(data)
    require_folder(data)
    return data


def check_place(data: Path, folder: Path) -> None:
    """Raise a UserError if a project cannot be created in a folder from the data in another."""
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(data)):
        raise UserError(
            f'{folder} is inside {data}, where ptnt new writes nothing: choose another folder'
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f'{folder} exists: choose another name, or remove it')
