"""Build one config of each folder that mmdet or mmseg ships, train it for a step, and predict.

    python tools/dev/host_configs.py mmdet                 # all folders
    python tools/dev/host_configs.py mmseg pspnet ccnet    # these folders, then any options
    python tools/dev/host_configs.py mmdet dcn/faster-rcnn_r50_fpn_dpool_1x_coco

Images are random and small, and weights are random too. Prints a Markdown table.
"""

import argparse
import multiprocessing
import resource
import traceback
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from torch.distributed import HashStore

from ptnt_mm.workbench.config.build import build_model


def choose(host: str, names: list[str]) -> list[Path]:
    """The first ResNet-50 config of each folder, or the first config without one.

    Args:
        host: mmdet or mmseg.
        names: Folders, or configs as folder/name; empty for all folders.
    """
    root = Path(find_spec(host).origin).parent / '.mim' / 'configs'
    names = names or sorted(path.name for path in root.iterdir() if path.name != '_base_')
    return [root / f'{name}.py' if '/' in name else first(root / name) for name in names]


def first(folder: Path) -> Path:
    """The representative config of a folder."""
    files = sorted(folder.glob('*.py'))
    return next((file for file in files if 'r50' in file.name), files[0])


def prepared(host: str, file: Path, side: int) -> torch.nn.Module:
    """Build a config's model: for small images, without pretrained weights or other processes."""
    config = Config.fromfile(file)
    init_default_scope(host)
    shrink(config.model, side)
    model = build_model(config)
    # A few have torch's SyncBN by default. This would replace mmcv's, too, which needs no GPU here.
    return model if 'MMSyncBN' in config.pretty_text else revert_sync_batchnorm(model)


def shrink(node: object, side: int) -> None:
    """Remove settings that load weights or enlarge images, recursively."""
    if isinstance(node, dict):
        for key in ('init_cfg', 'pretrained', 'batch_augments', 'teacher_ckpt'):
            if key in node:
                node[key] = False if isinstance(node[key], bool) else None
        if 'size' in node and 'mean' in node:  # mmseg's data preprocessor
            node['size'] = (side, side)
        if node.get('type') == 'SyncBN':  # torch's, only for GPUs
            node['type'] = 'BN'
        if node.get('mode') == 'slide':
            node['mode'] = 'whole'
        teacher = node.get('teacher_config')
        if isinstance(teacher, str):
            mim = Path(find_spec('mmdet').origin).parent / '.mim'
            node['teacher_config'] = str(mim / teacher)
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list | tuple):
            shrink(child, side)


def detection_batch(model: torch.nn.Module, side: int, images: int) -> dict:
    """Images, or two frames of a video, with boxes, masks, a semantic map, and proposals."""
    from mmdet.testing import demo_mm_inputs, demo_mm_proposals, demo_track_inputs

    shape = (3, side, side)
    preprocessor = type(model.data_preprocessor).__name__
    if preprocessor == 'TrackDataPreprocessor':
        return demo_track_inputs(1, 2, [0], [shape], num_items=[3], with_mask=True)
    batch = demo_mm_inputs(
        *(images, shape, [3, 5][:images]),
        **dict(num_classes=2, with_mask=True, with_semantic=True, use_box_type=True),
    )
    for sample in batch['data_samples']:
        if not getattr(model, 'with_rpn', True):
            (sample.proposals,) = demo_mm_proposals([shape], 20)
        sample.set_metainfo(dict(homography_matrix=torch.eye(3).numpy()))
    if preprocessor == 'MultiBranchDataPreprocessor' and model.training:
        branches = ('sup', 'unsup_teacher', 'unsup_student')
        return {key: {branch: value for branch in branches} for key, value in batch.items()}
    return batch


def segmentation_batch(model: torch.nn.Module, side: int, images: int) -> dict:
    """Images with class maps."""
    from mmseg.structures import SegDataSample

    size = (side, side)
    samples = [SegDataSample(metainfo=dict(img_shape=size, ori_shape=size)) for _ in range(images)]
    for sample in samples:
        labels = torch.randint(model.num_classes, (1, *size))
        sample.gt_sem_seg = sample.gt_edge_map = PixelData(data=labels)  # edges are for PIDNet
    inputs = torch.randint(256, (images, 3, *size), dtype=torch.uint8)
    return dict(inputs=list(inputs), data_samples=samples)


BATCHES = {'mmdet': detection_batch, 'mmseg': segmentation_batch}


def walk(host: str, file: Path, side: int) -> Iterator[str]:
    """Build, compute a loss with gradients, and predict; yields the name of each step before it.

    Raises:
        Exception: whatever the step raises.
    """
    torch.manual_seed(0)
    # Needed by BoxInst and TOOD.
    MessageHub.get_current_instance().update_info_dict(dict(iter=1, epoch=0))
    yield 'build'
    model = prepared(host, file, side)
    yield 'loss'
    batch = model.data_preprocessor(BATCHES[host](model, side, 2), True)
    loss, _ = model.parse_losses(model(**batch, mode='loss'))
    yield 'gradients'
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert loss.isfinite(), f'the loss is {loss}'
    assert any(bool(gradient.any()) for gradient in gradients), 'all gradients are zero'
    yield 'prediction'
    model.eval()
    with torch.no_grad():  # One image: the masked convolution of mmcv takes no more.
        model(**model.data_preprocessor(BATCHES[host](model, side, 1), False), mode='predict')


def report(args: argparse.Namespace, file: Path, answers: SimpleQueue) -> None:
    """Try a config in a separate process, and put the result into the queue."""
    resource.setrlimit(resource.RLIMIT_CPU, (args.time_limit, args.time_limit))
    # For MMSyncBN, mmcv's.
    torch.distributed.init_process_group('gloo', store=HashStore(), rank=0, world_size=1)
    step = ''
    try:
        for step in walk(args.host, file, args.side):  # noqa: B007  # for the message below
            pass
        answers.put('works')
    except Exception as error:
        traceback.print_exc()
        message = ' '.join(str(error).split())
        answers.put(f'{step}: {type(error).__name__}: {message[:150]}')


def main() -> None:
    """Try each config in a separate process, so that none can disturb or stop the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('host', choices=BATCHES)
    parser.add_argument('folders', nargs='*')
    parser.add_argument('--time-limit', type=int, default=300, help='CPU seconds for each')
    parser.add_argument('--side', type=int, default=128, help='pixels of the images')
    args = parser.parse_args()
    __import__(f'{args.host}.apis')  # once, for all processes
    fork = multiprocessing.get_context('fork')
    counts = Counter()
    print('| Config | |\n|---|---|', flush=True)
    for file in choose(args.host, args.folders):
        answers = fork.SimpleQueue()
        process = fork.Process(target=report, args=(args, file, answers))
        process.start()
        process.join()
        answer = 'no answer' if answers.empty() else answers.get()
        counts['work' if answer == 'works' else 'do not'] += 1
        print(f'| {file.parent.name}/{file.stem} | {answer} |', flush=True)
    print('\n' + ', '.join(f'{count} {what}' for what, count in counts.items()))


if __name__ == '__main__':
    main()
