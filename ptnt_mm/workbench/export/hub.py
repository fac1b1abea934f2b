"""Publish a checkpoint in a repository of a Hugging Face hub, with a model card."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.metrics import readable
from ptnt_mm.utils.tables import markdown
from ptnt_mm.utils.text import printable
from ptnt_mm.version import __version__
from ptnt_mm.weights.files import as_safetensors, own_weights
from ptnt_mm.weights.published import locate
from ptnt_mm.weights.reader.files import is_address
from ptnt_mm.weights.reader.hub import WEIGHTS, read_address, require_hub, why_refused
from ptnt_mm.weights.reader.read import read_checkpoint
from ptnt_mm.workbench.config.hosts import HOSTS
from ptnt_mm.workbench.config.settings import scope_of
from ptnt_mm.workbench.config.stored import stored_config
from ptnt_mm.workbench.engine.scalar_logs import metrics_of, read_training_log
from ptnt_mm.workbench.export.privacy import check_traces, without_traces

_TASKS = {
    'detection': 'object-detection',
    'segmentation': 'image-segmentation',
    'classification': 'image-classification',
}
"""The hub's names of the hosts' tasks."""


def publish_to_hub(file: str, address: str, overwrite: bool = False) -> tuple[str, list[str]]:
    """Upload a checkpoint without its optimizer, as one commit.

    Args:
        file: A file, an address, or the name of published weights.
        address: The repository, as hf:OWNER/NAME; it is created if there is none.
        overwrite: Replace the weights in the repository.

    Returns:
        The address of the repository's page, and lines about what was changed in the config.

    Raises:
        UserError: if the file cannot be read, the config contains an access token, the repository
            has weights already, or the hub refuses. Nothing is then changed in it.
    """
    repository, revision, path = read_address(address)
    if revision or path:
        raise UserError(f'{address}: publish to hf:{repository}, without a revision and a file')
    hub = require_hub(address)
    files, changes = prepare(file, repository)
    operations = [hub.CommitOperationAdd(name, content) for name, content in files.items()]
    api = hub.HfApi(library_name='ptnt_mm', library_version=__version__)
    try:
        if not overwrite and api.repo_exists(repository) and api.file_exists(repository, WEIGHTS):
            raise UserError(f'{address} has a {WEIGHTS} already: replace it with `overwrite=True`')
        page = api.create_repo(repository, exist_ok=True)
        api.create_commit(repository, operations, commit_message='Publish with ptnt checkpoint')
    except UserError:
        raise
    except Exception as error:  # the package has libraries below it, each with its own kinds
        raise UserError(
            f'{address}: nothing was published: {why_refused(error, address)}'
        ) from error
    return str(page), changes


def prepare(file: str, repository: str) -> tuple[dict[str, bytes], list[str]]:
    """Make the files of a repository from a checkpoint and the log next to it.

    Returns:
        Weights, config, facts and model card by the names of their files; and settings that were
        removed from the config, with warnings.

    Raises:
        UserError: if the checkpoint cannot be read, or its config contains an access token.
    """
    file = locate(file)
    checkpoint = read_checkpoint(file)
    meta = checkpoint.get('meta') or {}
    settings, changes = without_traces(stored_config(meta.get('cfg', '')).to_dict())
    metrics = {} if is_address(file) else _metrics(Path(file).parent, meta)
    host = HOSTS.get(scope_of(settings))
    facts = dict(
        library='ptnt_mm',
        version=__version__,
        task=host and host.task,
        classes=list((meta.get('dataset_meta') or {}).get('classes') or []),
        epoch=meta.get('epoch'),
        iteration=meta.get('iter'),
        metrics=metrics,
    )
    text = Config(settings).pretty_text if settings else ''
    card = _card(repository, facts, has_config=bool(text))
    changes += check_traces(text + card)
    files = {WEIGHTS: as_safetensors(own_weights(checkpoint, file))}
    if text:
        files['config.py'] = text.encode()
    files['config.json'] = json.dumps(facts, indent=1, ensure_ascii=False).encode()
    files['README.md'] = card.encode()
    return files, changes


def _metrics(work_dir: Path, meta: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a checkpoint, from the log of its run if there is one."""
    with suppress(UserError):
        log = read_training_log(work_dir)
        step = meta.get('epoch' if log.counts_epochs else 'iter')
        for line in reversed(log.val):
            if line['step'] == step:
                return metrics_of(line)
    return {}


def _card(repository: str, facts: Mapping[str, Any], has_config: bool) -> str:
    """The model card: the hub's settings as YAML, then text."""
    header = dict(library_name='ptnt_mm', tags=['ptnt_mm'])
    if facts['task']:
        header['pipeline_tag'] = _TASKS[facts['task']]
    # JSON is YAML.
    lines = ['---', *(f'{key}: {json.dumps(value)}' for key, value in header.items()), '---', '']
    lines += [f'# {repository.rpartition("/")[2]}', '']
    trained = [f'{facts[key]} {name}' for key, name in _LENGTHS.items() if facts[key]]
    after = f', after {trained[0]}' if trained else ''
    lines += [f'Weights written by ptnt_mm {facts["version"]}{after}.', '']
    if facts['metrics']:
        lines += ['## Metrics', '', 'On the validation images of the run:', '']
        lines += [markdown(('Metric', 'Value'), readable(facts['metrics']).items()), '']
    if facts['classes']:
        names = ', '.join(printable(str(name)) for name in facts['classes'])
        lines += ['## Classes', '', names, '']
    lines += ['## Use', '', '```shell', f'ptnt train CONFIG --pretrained hf:{repository}']
    if has_config:
        lines += [
            f'hf download {repository} config.py --local-dir .',
            f'ptnt infer photo.jpg config.py hf:{repository}',
        ]
    lines += ['```', '', '`config.json` has the class names and the metrics.', '']
    return '\n'.join(lines)


_LENGTHS = dict(epoch='epochs', iteration='iterations')
