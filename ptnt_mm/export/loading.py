"""Load the network that is exported."""

from pathlib import Path

from mmengine.config import Config

from ptnt_mm.config.hosts import HOSTS, scope_of
from ptnt_mm.config.read import require_keys
from ptnt_mm.deploy.export_info import ExportInfo
from ptnt_mm.engine.load_in_range import stated_range
from ptnt_mm.export.end_to_end import EndToEndModel
from ptnt_mm.export.evaluation import check_loading, resizing
from ptnt_mm.export.supported_models import build_network
from ptnt_mm.inference.load import load_model
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.errors import UserError
from ptnt_mm.version import __version__
from ptnt_mm.weights.reader.read import local_file


def check_config(config: Config) -> None:
    """Raise a UserError if a config is incomplete, or not of a detector or a segmenter."""
    require_keys(config, ('model', 'test_dataloader'))
    scope = scope_of(config)
    host = HOSTS.get(scope)
    # The preprocessing of classifiers is not supported.
    if host is None or host.task == 'classification':
        name = config.filename or 'the config'
        raise UserError(f'{name} has default_scope={scope!r}: expected mmdet or mmseg')


def load_end_to_end(
    config: Config, checkpoint: Path | str, size: tuple[int, int] | None
) -> tuple[EndToEndModel, ExportInfo]:
    """The network of a config with its weights, and the metadata of its file.

    Args:
        config: A config that :func:`check_config` accepts.
        checkpoint: A training checkpoint.
        size: Height and width of the input in pixels; None for any.

    Raises:
        UserError: if the test pipeline is not supported, the model cannot be built, or the
            checkpoint does not fit it.
    """
    check_loading(config)
    scale, keep_ratio = resizing(config)
    value_range = stated_range(config)
    model, dataset_meta = load_model(config, str(checkpoint))
    classes = dataset_meta['classes']
    network = build_network(model)
    if network.task == 'features':
        kind = type(model).__name__
        print(f'{kind} is exported only as backbone and neck: docs/deploy.md lists complete models')
    about = ExportInfo(
        task=network.task,
        classes=None if classes is None else list(classes),
        size=None if size is None else list(size),
        scale=scale,
        keep_ratio=keep_ratio,
        thresholds=network.thresholds,
        config=Path(config.filename or 'config').name,
        checkpoint=local_file(checkpoint).name,
        checkpoint_sha256=sha256(local_file(checkpoint)),
        version=__version__,
        value_range=None if value_range is None else list(value_range),
        mask_grid=None if network.mask_grid is None else list(network.mask_grid),
    )
    return network, about
