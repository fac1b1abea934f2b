"""Which host's checks are a config's."""

from mmengine.config import Config

from ptnt_mm.check.detection.host import Detection
from ptnt_mm.check.host import Host
from ptnt_mm.check.segmentation.host import Segmentation

HOSTS: dict[str, type[Host]] = {'mmdet': Detection, 'mmseg': Segmentation}
"""By the default scope of their configs."""


def host_of(config: Config, splits: tuple[str, ...]) -> Host:
    """What is a config's host's own; other libraries have data sets like mmdet's, or none."""
    return HOSTS.get(config.get('default_scope'), Detection)(config, splits)
