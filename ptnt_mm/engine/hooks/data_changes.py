"""Notice when data changes between a run and its continuation."""

import hashlib
import os
from pathlib import Path
from typing import Any

from mmengine.dist import master_only
from mmengine.hooks import Hook

from ptnt_mm.engine.data_files import expected_files
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.atomic_files import sha256

_KEY = 'data_sha256'


@HOOKS.register_module()
class RememberDataHook(Hook):
    """Keep hashes of the training and validation data in every checkpoint, and compare on resume.

    Annotation files are hashed whole. Of a folder of images or masks, which would have to be read
    for hours, it is the names, sizes and times of the files.
    """

    @master_only
    def before_train(self, runner: Any) -> None:
        """Warn of what changed since the checkpoint that training continues from."""
        paths = {path for split in ('train', 'val') for path in expected_files(runner.cfg, split)}
        # Of each annotation file its hash, of each folder two.
        hashes = {
            str(path): _listing(path) if path.is_dir() else sha256(path)
            for path in sorted(paths)
            if path.exists()
        }
        known = runner.message_hub.runtime_info.get(_KEY)
        if isinstance(known, dict) and known:
            for path, now in hashes.items():
                if (what := _change(path, now, known)) is not None:
                    runner.logger.warning(f'{what}: this is another experiment now')
        runner.message_hub.update_info(_KEY, hashes)


def _change(path: str, now: str, known: dict) -> str | None:
    """What became of a file or folder, or None if it is as it was."""
    content, _, times = now.partition(' ')
    # The same files may lie elsewhere on another machine, and were copied there.
    before = [str(known[path])] if path in known else list(map(str, known.values()))
    if not any(one.startswith(content) for one in before):
        return f'{path} is not what this training began with'
    if path in known and times != before[0].partition(' ')[2]:
        return (
            f'files of {path} were written since, with the same names and sizes. If their content '
            'changed'
        )
    return None


def _listing(folder: Path) -> str:
    """The SHA-256 of the names and sizes of all files in a folder and below, and of their times."""
    listing, times = hashlib.sha256(), hashlib.sha256()
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            file = Path(parent, name)
            # Not those of what a link leads to: it may lead nowhere.
            stat = file.lstat()
            listing.update(f'{file.relative_to(folder).as_posix()}\0{stat.st_size}\n'.encode())
            times.update(f'{stat.st_mtime_ns}\n'.encode())
    return f'{listing.hexdigest()} {times.hexdigest()}'
