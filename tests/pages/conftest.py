"""The detector's checkpoint of the tests of inference."""

from predict.conftest import checkpoint

__all__ = ['checkpoint']
