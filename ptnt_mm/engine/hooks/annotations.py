"""Notice when annotations change between a run and its continuation."""

from typing import Any

from mmengine.dist import master_only
from mmengine.hooks import Hook

from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.files import sha256
from ptnt_mm.registry import HOOKS

_KEY = 'annotations_sha256'


@HOOKS.register_module()
class RememberAnnotationsHook(Hook):
    """Keep the hashes of the training annotations in every checkpoint, and compare on resume."""

    @master_only
    def before_train(self, runner: Any) -> None:
        """Warn of what changed since the checkpoint that training continues from."""
        hashes = _hashes(runner.cfg)
        known = runner.message_hub.runtime_info.get(_KEY, {})
        # The same files may lie elsewhere on another machine.
        changed = [file for file, digest in hashes.items() if digest not in known.values()]
        for file in changed if known else []:
            runner.logger.warning(
                f'{file} is not what this training began with: this is another experiment now'
            )
        runner.message_hub.update_info(_KEY, hashes)


def _hashes(config: Any) -> dict[str, str]:
    """SHA-256 of every annotation file of the training data."""
    paths = [
        data_set.path(data_set.settings.get('ann_file')) for data_set in data_sets(config, 'train')
    ]
    return {str(path): sha256(path) for path in paths if path is not None and path.is_file()}
