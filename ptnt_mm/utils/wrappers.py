"""Models inside of wrappers."""

from mmengine.model import BaseTTAModel, is_model_wrapper
from torch import nn


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, without DistributedDataParallel or test-time augmentation around it."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model
