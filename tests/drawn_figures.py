"""Collect the figures that a module saves, to inspect them."""

from types import ModuleType
from typing import Any

import pytest

from ptnt_mm.drawing import figures


def catch_figures(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[Any]:
    """A list of the saved figures; saving itself is unchanged."""
    caught = []

    def save_figure(figure, out_file):
        caught.append(figure)
        return figures.save_figure(figure, out_file)

    monkeypatch.setattr(module, 'save_figure', save_figure)
    return caught
