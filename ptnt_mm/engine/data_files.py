"""Whether the files that a config's datasets name are there, before anything slow is imported."""

from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.errors import UserError


def check_data_files(config: Config, splits: tuple[str, ...]) -> None:
    """Look for the annotation files and image folders of a config's datasets.

    Args:
        config: The config.
        splits: Which data loaders count: some of 'train', 'val' and 'test'.

    Raises:
        UserError: if something is missing: names it, the layout that the config expects, and
            where to read how to get it.
    """
    expected = list(dict.fromkeys(path for split in splits for path in _split_paths(config, split)))
    missing = [path for path in expected if not path.exists()]
    if not missing:
        return
    layout = '\n'.join(f'    {"missing" if p in missing else "found  "}  {p}' for p in expected)
    raise UserError(
        f'{missing[0]} is not there. The config expects, relative to {Path.cwd()}:\n{layout}\n'
        'docs/data.md says how to get COCO and how to use data of your own. The demo set is made '
        'by: python tools/make_demo_data.py data/demo'
    )


def _split_paths(config: Config, split: str) -> Iterator[Path]:
    loader = config.get(f'{split}_dataloader') or {}
    yield from _dataset_paths(loader.get('dataset') or {})
    evaluators = config.get(f'{split}_evaluator') or []
    for evaluator in evaluators if isinstance(evaluators, list) else [evaluators]:
        yield from _dataset_paths(dict(ann_file=evaluator.get('ann_file')))


def _dataset_paths(dataset: dict) -> Iterator[Path]:
    """The files of a dataset, of the one that it wraps, or of all that it joins."""
    if 'dataset' in dataset:
        yield from _dataset_paths(dataset['dataset'])
    for part in dataset.get('datasets', ()):
        yield from _dataset_paths(part)
    root = dataset.get('data_root') or ''
    if '://' in root:
        return
    names = [dataset.get('ann_file'), *(dataset.get('data_prefix') or {}).values()]
    for name in names:
        if isinstance(name, str) and name and '://' not in name:
            yield Path(root) / name
