"""The backbones' ImageNet weights: which file belongs to which size, and who has it."""

from pathlib import Path

from ptnt_mm.errors import UserError

SOURCE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/tree/master/tnt_pytorch'
"""Its README links each file on Baidu Disk and gives the password."""

FILES = {
    'ti': 'ptnt_ti_75.2.pth.tar',
    's': 'ptnt_s_82.0.pth.tar',
    'm': 'ptnt_m_83.5.pth.tar',
    'b': 'ptnt_b_84.1.pth.tar',
}
"""By size; the number is the file's ImageNet top-1 accuracy in percent."""


def file_name(size: str) -> str:
    """The file of a size; the name to give to one's own where nothing was published."""
    return FILES.get(size, f'ptnt_{size}.pth.tar')


def find(size: str, folder: Path) -> Path:
    """The file of a size.

    Raises:
        UserError: if it is not in the folder; says who has it.
    """
    file = folder / file_name(size)
    if not file.is_file():
        raise UserError(
            f'{file} is not there: its authors link it, with a password, on {SOURCE}. Save it '
            f'under this name, or say with --weights in which folder it is'
        )
    return file
