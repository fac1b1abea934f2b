"""Where the classes of this package are registered.

MMEngine's root registries are the parents of mmdet's, mmseg's, mmpretrain's and mmyolo's: a class
registered here once is found from all of them.
"""

from mmengine.registry import HOOKS, LOOPS, MODELS, OPTIM_WRAPPER_CONSTRUCTORS

__all__ = ['HOOKS', 'LOOPS', 'MODELS', 'OPTIM_WRAPPER_CONSTRUCTORS']
