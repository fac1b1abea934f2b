"""Decide where a run starts from: a pretrained backbone, a whole model, or a checkpoint."""

from dataclasses import dataclass, field
from pathlib import Path

from mmengine.config import Config, ConfigDict

from ptnt_mm.hooks.run_checkpoints import (
    best_checkpoint,
    read_latest_checkpoint,
    read_resumable,
)
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.mmengine import without_config
from ptnt_mm.workbench.config.initial_weights import (
    check_start,
    freeze_batch_norm,
    start_from_checkpoint,
    use_pretrained,
)
from ptnt_mm.workbench.config.settings import flat_settings
from ptnt_mm.workbench.config.stored import stored_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.work_dir import work_dir_of


@dataclass(frozen=True)
class Start:
    """The start of a run.

    Attributes:
        weights: The file or address of weights, or of the checkpoint to continue from; None for
            random initialisation.
        checkpoint: The loaded content of the checkpoint to continue from; None without one.
        stored: The settings of the run that wrote it; empty if unknown.
    """

    weights: str | None
    checkpoint: dict | None = None
    stored: ConfigDict = field(default_factory=ConfigDict)


def resume_of(config: Config, load_from: Path | str | None = None) -> str | None:
    """The checkpoint that ``resume=True`` in a config continues from, as in MMEngine.

    Args:
        config: With or without ``resume``, and with the ``load_from`` that belongs to it.
        load_from: Weights to start from if there is nothing to continue; then the config's
            ``load_from`` does not count.

    Returns:
        A file, 'auto' for the newest in the work dir, or None if the config has no ``resume``.
    """
    if not config.get('resume'):
        return None
    return 'auto' if load_from is not None else config.get('load_from') or 'auto'


def choose_start(
    view: ConfigView,
    work_dir: Path,
    pretrained: Path | str | None = None,
    load_from: Path | str | None = None,
    resume: Path | str | None = None,
    seed: int | None = None,
) -> Start:
    """Choose the start of a run, and write it into its config.

    Args:
        view: Its config is changed.
        work_dir: Where ``resume='auto'`` searches.
        pretrained: A backbone's weights. A resumed run no longer needs them, but its command may
            be repeated with them.
        load_from: The weights of a whole model: a file, an address, or the project or work dir of
            a run for its best checkpoint. None for those in the config.
        resume: A checkpoint to continue from, or 'auto' for the newest in the work dir. If there is
            none yet, the run starts from the beginning.
        seed: Seed of every random choice; None for the config's, or that of the resumed run.

    Raises:
        UserError: if a file is missing or cannot be read, or if arguments contradict each other.
    """
    config = view.config
    if load_from is not None:
        config.load_from = str(_best_of_run(load_from))
    if seed is not None:
        _set_seed(view, seed)
    checkpoint, stored = None, ConfigDict()
    config.resume = False
    if resume is not None:
        if isinstance(resume, bool):
            raise UserError(f"`resume={resume}`: expected 'auto', or the path of a checkpoint")
        if str(resume) == 'auto':
            file, content = read_latest_checkpoint(work_dir)
        else:
            file, content = resume, read_resumable(resume)
        config.resume = content is not None
        if content is not None:
            stored = _continue_from(view, str(file), content)
            checkpoint = without_config(content)
        resumed_seed = view.randomness.get('seed')
        if seed not in (None, resumed_seed):
            raise UserError(
                f'`seed={seed}`: the run that `resume` continues has seed {resumed_seed}: '
                'omit `seed`'
            )
    if pretrained is not None and checkpoint is None:
        if config.get('load_from'):
            raise UserError(
                f'`pretrained={pretrained}`: the whole model starts from {config.load_from}, which '
                'contains the backbone too: use either `pretrained` or `load_from` (load_from in '
                'the config), not both'
            )
        use_pretrained(view, str(pretrained))
    return Start(check_start(view), checkpoint, stored)


def _continue_from(view: ConfigView, file: str, content: dict) -> ConfigDict:
    """Continue from a checkpoint.

    The seed is kept too, even if the config has a different one: MMEngine would use it for
    everything except the order of the images. Returns the stored settings.
    """
    view.config.load_from = file
    stored = stored_config(content['meta'].get('cfg', ''))
    seed = content['meta'].get('seed')
    if isinstance(seed, int):
        _set_seed(view, seed)
    start_from_checkpoint(view)
    if flat_settings(stored).get('model.backbone.norm_eval') == 'True':
        # The run was started from pretrained weights.
        freeze_batch_norm(view.backbone)
    return stored


def _best_of_run(load_from: Path | str) -> Path | str:
    """The best checkpoint, if the path is the folder of a run; otherwise the path itself."""
    if not Path(load_from).is_dir():
        return load_from
    work_dir = work_dir_of(Path(load_from))
    if (best := best_checkpoint(work_dir)) is None:
        raise UserError(f'`load_from={load_from}`: {work_dir} contains no checkpoint')
    return best


def _set_seed(view: ConfigView, seed: int) -> None:
    view.config.randomness = dict(view.randomness, seed=seed)
