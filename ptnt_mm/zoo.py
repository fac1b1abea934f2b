"""Former path of `ptnt_mm.config.zoo`."""

from ptnt_mm.config.zoo import config_names, config_path, copy_config, get_config  # noqa: F401
