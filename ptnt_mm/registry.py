"""The registries that the classes of this package register in.

They are MMEngine's root registries, the parents of those of mmdet, mmseg, mmpretrain and mmyolo. A
class registered here once is found from all of them.
"""

from mmengine.registry import (
    DATASETS,
    HOOKS,
    LOOPS,
    METRICS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIM_WRAPPERS,
    TRANSFORMS,
    WEIGHT_INITIALIZERS,
)

__all__ = [
    'DATASETS',
    'HOOKS',
    'LOOPS',
    'METRICS',
    'MODELS',
    'OPTIM_WRAPPERS',
    'OPTIM_WRAPPER_CONSTRUCTORS',
    'TRANSFORMS',
    'WEIGHT_INITIALIZERS',
]
