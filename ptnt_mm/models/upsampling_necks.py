"""The former path of these classes, which configs may name."""

from ptnt_mm.models.necks import FinerLevelNeck, TransposedConvNeck  # noqa: F401
