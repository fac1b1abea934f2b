"""Former path of `ptnt_mm.weights.reader.read`."""

from ptnt_mm.weights.reader.read import read_checkpoint, require_checkpoint  # noqa: F401
