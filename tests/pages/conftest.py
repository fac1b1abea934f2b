"""The detector's checkpoint of the tests of inference."""

from inference.conftest import checkpoint

__all__ = ['checkpoint']
