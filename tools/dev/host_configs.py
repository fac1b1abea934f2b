"""Build one config of each folder that mmdet or mmseg ships, train it for a step, and predict.

    python tools/dev/host_configs.py mmdet                   # all folders
    python tools/dev/host_configs.py mmseg pspnet deeplabv3  # these alone

Images are random and small, weights random too. Prints a Markdown table.
"""

import argparse
import multiprocessing
import traceback
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope

import ptnt_mm  # noqa: F401  # offers our operators to mmcv

SIZE = 128


def choose(host: str, names: list[str]) -> list[Path]:
    """The first ResNet-50 config of each folder, or its first where it has none."""
    root = Path(find_spec(host).origin).parent / '.mim' / 'configs'
    folders = [root / name for name in names] or sorted(root.iterdir())
    found = [sorted(folder.glob('*.py')) for folder in folders if folder.name != '_base_']
    return [next((file for file in files if 'r50' in file.name), files[0]) for files in found]


def prepared(host: str, file: Path) -> torch.nn.Module:
    """Build a config's model: for small images, without pretrained weights or other processes."""
    config = Config.fromfile(file)
    init_default_scope(host)
    shrink(config.model)
    return revert_sync_batchnorm(MODELS.build(config.model))


def shrink(node: object) -> None:
    """Take out what loads weights and what enlarges images, all the way down."""
    if isinstance(node, dict):
        for key in ('init_cfg', 'pretrained', 'batch_augments', 'teacher_ckpt'):
            if key in node:
                node[key] = None
        if 'size' in node and 'mean' in node:  # mmseg's data preprocessor
            node['size'] = (SIZE, SIZE)
        if node.get('mode') == 'slide':
            node['mode'] = 'whole'
        teacher = node.get('teacher_config')
        if isinstance(teacher, str):
            mim = Path(find_spec('mmdet').origin).parent / '.mim'
            node['teacher_config'] = str(mim / teacher)
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list | tuple):
            shrink(child)


def detection_batch(model: torch.nn.Module) -> dict:
    """Two images with boxes, masks, a semantic map, and proposals for the models that want them."""
    from mmdet.testing import demo_mm_inputs, demo_mm_proposals

    shape = (3, SIZE, SIZE)
    batch = demo_mm_inputs(2, shape, num_items=[3, 5], num_classes=2, with_mask=True,
                           with_semantic=True, use_box_type=True)  # fmt: skip
    proposals = demo_mm_proposals([shape] * 2, 20)
    for sample, proposal in zip(batch['data_samples'], proposals, strict=True):
        sample.proposals = proposal
    return batch


def segmentation_batch(model: torch.nn.Module) -> dict:
    """Two images with class maps."""
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample

    samples = []
    for _ in range(2):
        sample = SegDataSample(metainfo=dict(img_shape=(SIZE, SIZE), ori_shape=(SIZE, SIZE)))
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 2, (1, SIZE, SIZE)))
        samples.append(sample)
    images = list(torch.randint(0, 256, (2, 3, SIZE, SIZE), dtype=torch.uint8))
    return dict(inputs=images, data_samples=samples)


BATCHES = {'mmdet': detection_batch, 'mmseg': segmentation_batch}


def walk(host: str, file: Path, answers: multiprocessing.SimpleQueue) -> None:
    """Build, take a loss with gradients, and predict; put into the queue how it went."""
    torch.manual_seed(0)
    step = 'build'
    try:
        model = prepared(host, file)
        step = 'loss'
        batch = model.data_preprocessor(BATCHES[host](model), True)
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
        step = 'gradients'
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert loss.isfinite() and any(bool(gradient.any()) for gradient in gradients)
        step = 'prediction'
        model.eval()
        with torch.no_grad():
            model(**model.data_preprocessor(BATCHES[host](model), False), mode='predict')
        answers.put('works')
    except Exception as error:
        traceback.print_exc()
        message = ' '.join(str(error).split())
        answers.put(f'{step}: {type(error).__name__}: {message[:150]}')


def main() -> None:
    """Each config in a process of its own, so that none can disturb or stop the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('host', choices=BATCHES)
    parser.add_argument('folders', nargs='*')
    parser.add_argument('--time-limit', type=int, default=300, help='seconds for each config')
    args = parser.parse_args()
    __import__(f'{args.host}.apis')  # once, for all processes
    fork = multiprocessing.get_context('fork')
    counts = Counter()
    print('| Config | |\n|---|---|')
    for file in choose(args.host, args.folders):
        answers = fork.SimpleQueue()
        process = fork.Process(target=walk, args=(args.host, file, answers))
        process.start()
        process.join(args.time_limit)
        process.kill()
        answer = 'no answer' if answers.empty() else answers.get()
        counts['works' if answer == 'works' else 'does not'] += 1
        print(f'| {file.parent.name}/{file.stem} | {answer} |', flush=True)
    print('\n' + ', '.join(f'{count} {what}' for what, count in counts.items()))


if __name__ == '__main__':
    main()
