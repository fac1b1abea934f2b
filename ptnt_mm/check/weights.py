"""Pretrained weights: readable, fitting, and used with the normalisation of their training."""

from collections.abc import Iterator, Mapping
from math import inf

from mmengine.config import Config
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ptnt_mm.check.recipe import say_where_weights_come_from
from ptnt_mm.engine.constructors import is_of_family
from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.engine.settings import kind_of
from ptnt_mm.engine.starting_weights import check_start, starting_weights
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.models.weights.pretrained import CheckpointError, load_pretrained, pretrained_init
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Finding, error, note, ok, warning

_AUTHORS = 127.5  # mean and std of every channel of the images that the weights were trained on


def check_weights_are_there(config: Config) -> Iterator[Finding]:
    """Check that the file that training starts from exists, without opening it."""
    try:
        yield from say_where_weights_come_from(config, check_start(config))
    except UserError as err:
        yield error('model.backbone', str(err))


def check_weights_fit(config: Config, model: nn.Module) -> Iterator[Finding]:
    """Read the file that training starts from, without running any code in it, and load it."""
    weights = starting_weights(config)
    if weights is None:
        return
    if '://' in weights:
        yield note('Weights', f'{weights} is an address: it was not downloaded')
    elif not isinstance(getattr(model, 'backbone', None), Backbone):
        yield note('Weights', f'{weights} is for another backbone: it was not checked')
    else:
        init = None if config.get('load_from') else pretrained_init(model.backbone.init_cfg)
        prefix = init and init.get('prefix')
        try:
            report = load_pretrained(model.backbone, weights, prefix, logger='silent')
        except CheckpointError as err:
            yield error('Weights', str(err), 'ptnt checkpoint inspect shows the content of a file')
            return
        yield ok('Weights', f'{len(report.loaded)} weights of the backbone fit')


def check_statistics(config: Config, model: nn.Module) -> Iterator[Finding]:
    """Find BatchNorm that keeps its initial statistics, as mmdet's ResNet does by default."""
    backbone = getattr(model, 'backbone', None)
    starts = starting_weights(config) or config.model.get('init_cfg')
    # Those of our family raise an error at the start.
    if backbone is None or isinstance(backbone, Backbone) or starts:
        return
    backbone.train()
    norms = [part for part in backbone.modules() if isinstance(part, _BatchNorm)]
    if norms and not any(part.training for part in norms):
        what = 'BatchNorm keeps its initial statistics, and there are no weights to start from'
        yield warning('model.backbone', what, 'write norm_eval=False, or start from weights')


def preprocessor_of(config: Config) -> Mapping:
    """The settings of a model's data preprocessor; empty if the config has none."""
    return config.model.get('data_preprocessor') or config.get('data_preprocessor') or {}


def check_normalisation(config: Config) -> Iterator[Finding]:
    """Compare the mean and standard deviation in the config with those of the weights."""
    where = 'model.data_preprocessor'
    scale = preprocessor_of(config)
    mean, std = scale.get('mean'), scale.get('std')
    # A whole model, as load_from has it, may have been trained on other mean and std.
    is_ours = is_of_family(config.model.get('backbone') or {}, scope_of(config))
    pretrained = is_ours and not config.get('load_from') and starting_weights(config) is not None
    if mean is None or std is None:
        what = f'has mean={mean} and std={std}: the model gets values from 0 to 255'
        # Some detectors are trained like this from random initialisation, such as YOLOX.
        report = warning if is_ours or starting_weights(config) is not None else note
        yield report(where, what, f'write mean=[{_AUTHORS}] * 3, std=[{_AUTHORS}] * 3')
    elif not all(0 < number < inf for number in std):
        what = f'std={list(std)}: images are divided by it'
        yield error(where, what, f'write numbers above 0, such as std=[{_AUTHORS}] * 3')
    elif max(*mean, *std) <= 1:
        what = f'mean={list(mean)} and std={list(std)} are for images from 0 to 1'
        yield error(where, what, 'images have values from 0 to 255 here: multiply both by 255')
    elif pretrained:
        found = list(_unlike_the_authors(config, where, scale))
        what = f'mean and std are {_AUTHORS} and images RGB, as for the weights'
        yield from found or [ok(where, what)]
    else:
        yield ok(where, f'mean={list(mean)}, std={list(std)}')


def _unlike_the_authors(config: Config, where: str, scale: Mapping) -> Iterator[Finding]:
    for key in ('mean', 'std'):
        if list(scale[key]) != [_AUTHORS] * 3:
            what = f'is {list(scale[key])}; the published weights were trained with {_AUTHORS}'
            advice = f'write {key}=[{_AUTHORS}] * 3, unless your weights were trained otherwise'
            yield warning(f'{where}.{key}', what, advice)
    key = HOSTS.get(scope_of(config), HOSTS['mmdet']).to_rgb
    # A data set without image files, such as CIFAR, has RGB.
    steps = [kind_of(step) for dataset in data_sets(config, 'train') for step in dataset.pipeline]
    reads_files = not steps or any(step.startswith('LoadImage') for step in steps)
    if reads_files and not scale.get(key):
        what = 'is not set, and images are read as BGR; the published weights expect RGB'
        yield warning(f'{where}.{key}', what, f'write {key}=True')
