"""The backbones' ImageNet weights: the file for each size, and where to get it."""

from pathlib import Path

from ptnt_mm.utils.errors import UserError

SOURCE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/tree/master/tnt_pytorch'
"""The README there links each file on Baidu Disk and gives the password."""

FILES = {
    'ti': 'ptnt_ti_75.2.pth.tar',
    's': 'ptnt_s_82.0.pth.tar',
    'm': 'ptnt_m_83.5.pth.tar',
    'b': 'ptnt_b_84.1.pth.tar',
}
"""File name by size. The number in it is the ImageNet top-1 accuracy in percent."""


def file_name(size: str) -> str:
    """The file of a size; the name to give to one's own where nothing was published."""
    return FILES.get(size, f'ptnt_{size}.pth.tar')


def find(size: str, folder: Path) -> Path:
    """Return the weight file for a size.

    Raises:
        UserError: if it is not in the folder; says where to get it.
    """
    file = folder / file_name(size)
    if not file.is_file():
        raise UserError(
            f'{file} is missing: its authors link it, with a password, on {SOURCE}. Save it under '
            f'this name, or name the folder that holds it with --weights'
        )
    return file
