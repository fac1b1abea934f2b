"""Settings that a config may have in one of several places."""

from collections.abc import Mapping

from mmengine.config import Config


def preprocessor_of(config: Config) -> Mapping:
    """The settings of a model's preprocessor of images; none if the config has none."""
    return config.model.get('data_preprocessor') or config.get('data_preprocessor') or {}
