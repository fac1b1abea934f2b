"""The former path of this class, which configs may name."""

from ptnt_mm.models.necks import SimpleFeaturePyramid  # noqa: F401
