"""Supported and installed versions of packages, and their comparison.

`setup.py` and the docs contain the same bounds, which tests/utils/test_versions.py checks. Nothing
here imports the packages themselves, which may be broken.
"""

from importlib import metadata

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

# name: (bounds, the version that the tests run on)
VERSIONS = {
    'Python': ('>=3.11,<3.14', '3.11 to 3.13'),
    'torch': ('>=2.6', '2.15.0'),
    'mmengine': ('>=0.10.7,<0.11', '0.10.7'),
    'onedl-mmengine': ('>=0.10.12,<0.11', '0.10.12'),
    # Also as mmcv. mmdet 3.3 and mmsegmentation 1.2.2 refuse 2.2.
    'mmcv-lite': ('>=2.1,<2.2', '2.1.0'),
    'onedl-mmcv': ('>=2.3.6,<2.4', '2.3.6'),
    'mmdet': ('>=3.3,<3.4', '3.3.0'),
    'onedl-mmdetection': ('>=3.5.1,<3.6', '3.5.1'),
    'mmsegmentation': ('>=1.2.2,<1.3', '1.2.2'),
    'onedl-mmsegmentation': ('>=1.4.2,<1.5', '1.4.2'),
    'mmpretrain': ('>=1.2,<1.3', '1.2.0'),
    'onedl-mmpretrain': ('>=1.3.6,<1.4', '1.3.6'),
    'onedl-mmrotate': ('>=1.2.1,<1.3', '1.2.1'),
    # 82 dropped pkg_resources, which MMEngine imports for `mmdet::` bases and the like. Its fork
    # does not.
    'setuptools': ('<81', '80.10.2'),
    'opencv-python': ('>=3', '5.0.0.93'),
}

# The maintained forks of packages: other names for pip, the same import names.
FORKS = {
    'mmengine': 'onedl-mmengine',
    'mmcv-lite': 'onedl-mmcv',
    'mmdet': 'onedl-mmdetection',
    'mmsegmentation': 'onedl-mmsegmentation',
    'mmpretrain': 'onedl-mmpretrain',
}

# The host libraries by the names that they are imported by.
HOST_IMPORTS = {
    'mmdet': 'mmdet',
    'mmseg': 'mmsegmentation',
    'mmpretrain': 'mmpretrain',
    'mmrotate': 'onedl-mmrotate',
}

# The packages that each host imports without requiring them.
HOST_PACKAGES = {
    'mmdet': '',
    'mmsegmentation': ' ftfy regex',
    'mmpretrain': '',
    'onedl-mmrotate': '',
}

# Those that run on the forks alone.
ON_FORKS = {'onedl-mmrotate'}


def provider(name: str) -> str:
    """Return the name for pip of a package here: its own, or its fork's.

    If neither is installed, it is the fork's where another fork is.
    """
    fork = FORKS.get(name, name)
    if _version(fork) or (not _version(name) and any(map(_version, FORKS.values()))):
        return fork
    return name


def installed(name: str) -> str | None:
    """Return the installed version of a package or of its fork; None if there is neither."""
    return _version(provider(name))


def shadowed(name: str) -> bool:
    """Whether both a package and its fork are installed, which overwrite each other's files."""
    return name in FORKS and bool(_version(name) and _version(FORKS[name]))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def is_within(version: str | None, bounds: str) -> bool:
    """Return True if a version is within bounds such as '>=3.3,<3.4', by pip's rule.

    A prerelease counts: 2.16.0.dev1 is within '>=2.6', and 0.11rc0 is not within '<0.11'.
    """
    try:
        return version is not None and SpecifierSet(bounds).contains(version, prereleases=True)
    except InvalidVersion:
        return False
