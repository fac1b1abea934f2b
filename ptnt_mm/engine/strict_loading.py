"""Former path of `ptnt_mm.weights.mmengine.load_strictly`."""

from ptnt_mm.weights.mmengine import load_strictly  # noqa: F401
