"""The former path of this class, which configs may name."""

from ptnt_mm.models.mmdet_models import InstanceTTAModel  # noqa: F401
