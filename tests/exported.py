"""Exported files whose network is a Python function, which ONNX Runtime seems to run."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ptnt_mm.deploy import Detections
from ptnt_mm.deploy.export_info import ExportInfo, with_export_info

ABOUT = ExportInfo(
    task='detection',
    classes=['square'],
    size=None,
    scale=None,
    keep_ratio=True,
    thresholds=dict(score=0.05, mask=0.5),
    mask_grid=[1, 1],  # a value for each pixel, half a pixel away
    config='x.py',
    checkpoint='x.pth',
    checkpoint_sha256='',
    version='0.1.0',
)

Network = Callable[[np.ndarray], Sequence[np.ndarray]]
"""Images (1, H, W, 3), uint8 in RGB -> the outputs."""


def replace_network(monkeypatch: pytest.MonkeyPatch, names: Sequence[str], network: Network):
    """Make every exported file a function with these outputs."""

    def session(*_: object, **options: object) -> SimpleNamespace:
        return SimpleNamespace(
            get_outputs=lambda: [SimpleNamespace(name=name) for name in names],
            run=lambda names, inputs: network(inputs['images']),
        )

    monkeypatch.setattr('onnxruntime.InferenceSession', session)


def export_detector(
    monkeypatch: pytest.MonkeyPatch,
    file: Path,
    detect: Callable[[np.ndarray], Detections],
    has_masks: bool = False,
    **about: object,
) -> Path:
    """Write a file that finds what ``detect`` finds in an image, (H, W, 3).

    Args:
        about: Fields of its description that differ from ``ABOUT``.
    """
    names = ('boxes', 'scores', 'labels', 'masks')[: 4 if has_masks else 3]

    def network(images: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(output)[None] for output in detect(images[0])[: len(names)]]

    replace_network(monkeypatch, names, network)
    file.write_bytes(with_export_info(b'body' * 100, replace(ABOUT, **about), file.suffix))
    return file
