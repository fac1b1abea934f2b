"""Build the model of a config, with errors that a user can act on."""

import copy
import warnings

from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from ptnt_mm.config.build_errors import explained_building
from ptnt_mm.config.hosts import import_host
from ptnt_mm.config.settings import scope_of
from ptnt_mm.weights.mmengine import make_loading_safe


def build_model(config: Config, name: str = 'the model') -> nn.Module:
    """Import the host library and build a config's model, with random weights.

    From here on, MMEngine loads checkpoints safely.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments; the
            message begins with ``name``.
    """
    make_loading_safe()
    scope = scope_of(config)
    import_host(scope)
    with (
        DefaultScope.overwrite_default_scope(scope),
        explained_building(name),
        warnings.catch_warnings(),
    ):
        # Deprecation warnings between libraries, which the user cannot act on.
        warnings.simplefilter('ignore')
        # Some of mmdet's constructors modify their settings.
        settings = copy.deepcopy(config.model)
        # As MMEngine's runner does: in mmpretrain's configs it is at the top level.
        if config.get('data_preprocessor') is not None:
            settings.setdefault('data_preprocessor', copy.deepcopy(config.data_preprocessor))
        return MODELS.build(settings)
