"""The published weights of the family, found by name."""

from pathlib import Path
from typing import Any

from ptnt_mm.checkpoints.refusal import CheckpointError
from ptnt_mm.models.archs import FAMILY, Published
from ptnt_mm.utils.text import unknown_name

PUBLISHED: dict[str, tuple[Published, str]] = {
    file.name: (file, f'{kind} {arch}')
    for kind, archs in FAMILY.items()
    for arch, row in archs.items()
    for file in row['published']
}
"""Map each name to a file and its network, such as 'TNT small'."""

LEADS = (
    'https://download.mindspore.cn/model_zoo/research/cv/CFDT/ reportedly has CFDT, a detector '
    '(42.1 AP on COCO) with PyramidTNT-Ti; its trunk has no relative tables, and was trained with '
    "convolutions between its stages that PyramidTNT does not have: position='learned'",
    'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/tag/tnt: in December '
    '2024, a user named only S and B as the missing files of PyramidTNT (issue 207)',
    'https://visionlab-pretrainedmodels.s3.amazonaws.com/model_zoo/vignn/'
    'ptnt_s_82.0-1752a427.pth.tar has the name of PyramidTNT-S, but is loaded as Pyramid ViG-S',
)
"""Places where weights of PyramidTNT may be; unconfirmed."""


def locate(weights: str) -> str:
    """The address of a published file, by its name; any other text, such as a path, unchanged.

    Raises:
        CheckpointError: if the file of that name cannot be downloaded directly.
    """
    if weights not in PUBLISHED:
        return weights
    file, network = PUBLISHED[weights]
    if file.url is None:
        raise CheckpointError(f'{weights}: no weights of {network} were published')
    if file.address is None:
        raise CheckpointError(
            f'{weights}: the weights of {network} have no direct address: open {file.url} in a '
            f'browser (password {file.password}), and pass the path of the file'
        )
    return file.address


def no_such_weights(weights: str) -> str:
    """Message for neither a file nor a name; suggests the nearest name unless it is a path."""
    message = f'there is no file {weights} to start from'
    if Path(weights).name != weights or Path(weights).suffix:
        return message
    direct = [name for name, (file, _) in PUBLISHED.items() if file.address]
    return f'{message}, and {unknown_name("name of `ptnt weights`", weights, direct)}'


def default_cfg(backbone: str) -> dict[str, Any]:
    """The mean and std of a backbone of the family, and its weights if they can be downloaded."""
    if backbone not in PUBLISHED:
        return {}
    file, _ = PUBLISHED[backbone]
    scale = dict(mean=list(file.mean), std=list(file.std))
    return scale if file.address is None else dict(scale, weights=backbone)
