"""Notice when annotations change between a run and its continuation."""

from typing import Any

from mmengine.dist import master_only
from mmengine.hooks import Hook

from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.files import listing_sha256, sha256
from ptnt_mm.registry import HOOKS

_KEY = 'annotations_sha256'


@HOOKS.register_module()
class RememberAnnotationsHook(Hook):
    """Keep the hashes of the training annotations in every checkpoint, and compare on resume.

    Annotation files are hashed whole. Of a folder of masks, which would have to be read for hours,
    it is the names and the sizes of the files.
    """

    @master_only
    def before_train(self, runner: Any) -> None:
        """Warn of what changed since the checkpoint that training continues from."""
        hashes = _hashes(runner.cfg)
        known = runner.message_hub.runtime_info.get(_KEY, {})
        # The same files may lie elsewhere on another machine.
        changed = [path for path, digest in hashes.items() if digest not in known.values()]
        for path in changed if known else []:
            runner.logger.warning(
                f'{path} is not what this training began with: this is another experiment now'
            )
        runner.message_hub.update_info(_KEY, hashes)


def _hashes(config: Any) -> dict[str, str]:
    """SHA-256 of every annotation file of the training data, and of what masks are listed as."""
    hashes = {}
    for data_set in data_sets(config, 'train'):
        file = data_set.path(data_set.settings.get('ann_file'))
        if file is not None and file.is_file():
            hashes[str(file)] = sha256(file)
        masks = data_set.path((data_set.settings.get('data_prefix') or {}).get('seg_map_path'))
        if masks is not None and masks.is_dir():
            hashes[str(masks)] = listing_sha256(masks)
    return hashes
