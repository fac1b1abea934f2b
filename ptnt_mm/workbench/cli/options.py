"""All commands and their options, each declared once. This module needs only Python.

From here come the flags and their help, the completion of shells, and the tables in
``docs/options.md``. A new option is a line in the ``keywords`` of its command, and a keyword
argument of the function, whose docstring repeats the sentence; a test compares the two. A sentence
names other arguments between backquotes, as errors do; the help shows their flags.
"""

import re
import sys
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Repeatable, Switch
from ptnt_mm.workbench.data.formats import FORMAT_NAMES
from ptnt_mm.workbench.data.writers import WRITER_NAMES

# ---- Types of values, besides those of Python. argparse prints their errors.


def number(
    read: Callable[[str], float], expected: str, fits: Callable[[float], bool]
) -> Callable[[str], float]:
    """A type: a number that fits, as ``expected`` describes it."""

    def checked(text: str) -> float:
        with suppress(ValueError):
            if fits(value := read(text)):
                return value
        raise ArgumentTypeError(f'{text!r} is not {expected}')

    return checked


def at_least(least: int) -> Callable[[str], float]:
    """A type: an integer from ``least``."""
    return number(int, f'an integer from {least}', lambda value: value >= least)


positive, not_negative = at_least(1), at_least(0)
seed = number(int, 'an integer from 0 to 4294967295', lambda value: 0 <= value < 2**32)
score = number(float, 'a number from 0 to 1', lambda value: 0 <= value <= 1)


def setting(text: str) -> str:
    """KEY=VALUE, unchanged."""
    if '=' not in text:
        raise ArgumentTypeError(
            f"{text!r}: expected KEY=VALUE ..., with a number, a word or a list, such as '[1,2]'"
        )
    return text


def patterns(text: str) -> str:
    """Two patterns with {}, unchanged."""
    if text.count('{}') < 2 or ' ' not in text.strip():
        raise ArgumentTypeError(
            f"{text!r}: expected two patterns with {{}}, such as 'images/{{}}.jpg masks/{{}}_m.png'"
        )
    return text


def point(text: str) -> tuple[float, float]:
    """Two numbers from text such as '120,80'."""
    try:
        x, y = map(float, text.split(','))
    except ValueError as error:
        raise ArgumentTypeError(f'{text!r} is not a pixel such as 120,80') from error
    return x, y


# fmt: off
# ---- What several commands have


def _cfg_options(example: str) -> Repeatable:
    return Repeatable('cfg_options', f'change settings: {example}', setting, metavar='KEY=VALUE')


def _config(example: str = 'train_dataloader.batch_size=4 model.backbone.with_cp=True') -> tuple:
    about = 'a file, the name of a config of this package, or a folder created by ptnt new'
    return Argument('config', about), _cfg_options(example)


_DATA_ROOT = Option('data_root', "read all data from this folder, in place of the config's "
                    'data_root', metavar='DIR')
_CHECKPOINT = Argument('checkpoint', 'a training checkpoint; by default the best or the newest in '
                       "the config's work dir", nargs='?')
_LOCAL_RANK = Option('local_rank', '', int, 0, flags=('--local_rank', '--local-rank'))
"""torch.distributed.launch passes it as an argument, torchrun by the environment."""

_WORK_DIR = Option('work_dir', "folder of logs and checkpoints; by default the config's, or "
                   'work_dirs/CONFIG', Path)
_LAUNCHER = Option('launcher', 'what starts the processes of a distributed run', default='none',
                   choices=('none', 'pytorch', 'slurm', 'mpi'))
_DEVICE = Option('device', 'cpu, cuda or cuda:1; by default the best available')
_TILE = number(int, '0 or an integer from 32', lambda value: value == 0 or value >= 32)
_REPLACE = Switch('overwrite', 'replace an existing file')
_JSON = (
    Option('json', 'also write JSON to this file; - prints it, and moves the text to standard '
           'error', Path, metavar='FILE'),
    Switch('overwrite', 'replace the file of --json if it exists'),
)
_FILE = Argument('file', '.pth, .pth.tar, .pt, .safetensors, address, hf:OWNER/NAME, or name from '
                 'ptnt weights')

# ---- The commands

_NEW = Command(
    'new',
    'create a training setup from labelled images',
    """Create a training setup from a folder of labelled images in any common format.

ptnt new photos/bccd bccd
ptnt train bccd
""",
    words=(
        Argument('data', "folder of images and labels, or YOLO's data.yaml in it; only read", Path),
        Argument('folder', 'the project to create: a config and labels', Path),
    ),
    keywords=(
        Option('format', 'format of the labels; recognised from the files by default',
               names=FORMAT_NAMES),
        Option('task', 'detection, instance, semantic or classification; by default the one that '
               'uses most of the labels'),
        Option('pairs', 'patterns of the paths of images and masks, with {} for what both share: '
               "'images/{}.jpg masks/{}_m.png'; by default, their names are compared",
               patterns,
               metavar='PATTERNS'),
        Option('detector', 'gfl, atss, tood, rtmdet, retinanet or cascade for boxes; mask_rcnn, '
               'condinst, solov2 or rtmdet_ins for masks; semantic_fpn, segformer or upernet for '
               'class masks; the first of each by default', metavar='NAME'),
        Option('backbone', 'such as ptnt_s, tnt_s, efficientnet_lite0, resnet18, swin_t, or a '
               'registered class with its arguments; by default one whose pretrained weights are '
               'available'),
        Option('weights', 'weights of the backbone: a file, an address, hf:OWNER/NAME, a name from '
               "ptnt weights, 'published', or 'none' for random initialisation; by default the "
               'published ones, if they are available', metavar='WEIGHTS'),
        Option('size', 'longer side of training images, at least 32; chosen by default',
               at_least(32), metavar='PIXELS'),
        Option('tile', 'side of the tiles that larger training images are cut into, at least 32, '
               'or 0 to keep images whole; by default only where small objects need it', _TILE,
               metavar='PIXELS'),
        Option('epochs', 'number of passes through the images; chosen by default', positive),
        Option('val_share', 'share of the images to validate on, 0.2 by default, if the data '
               'has no validation split',
               number(float, 'a number between 0 and 1', lambda value: 0 < value < 1),
               metavar='SHARE'),
        Option('like', 'a previous project: its images keep their splits, and new ones are split '
               'by the same rule', Path, metavar='PROJECT'),
    ),
    function='create_project',
)

_TRAIN = Command(
    'train',
    'train a detector, segmenter or classifier',
    """Train a detector, a segmenter or a classifier from an MMEngine config.

ptnt train retinanet_ptnt_s_1x --pretrained ptnt_s_82.0.pth.tar --auto-scale-lr
""",
    words=(*_config(), _DATA_ROOT, _LOCAL_RANK),
    keywords=(
        _WORK_DIR,
        _LAUNCHER,
        Option('pretrained', 'weights of the backbone: a file, an address, hf:OWNER/NAME, or a '
               "name from ptnt weights, such as tnt_s; freezes the stem's BatchNorm",
               metavar='WEIGHTS'),
        Option('load_from', 'start from the weights of a whole model, or of another project; heads '
               'may differ', metavar='PATH'),
        Option('resume', 'continue from a checkpoint, by default the newest in the work dir',
               metavar='PATH', alone='auto'),
        Switch('overwrite', 'delete the output of an earlier run in the work dir',
               instead_of='resume'),
        Option('epochs', "number of epochs; by default the config's. The learning rate, pipeline "
               'switches, weight averaging and evaluations are adjusted to it', positive,
               metavar='N'),
        Switch('amp', 'mixed precision, on an accelerator or a CPU that computes in bfloat16'),
        Switch('auto_scale_lr', 'scale the learning rate with the batch'),
        Switch('sync_bn', 'BatchNorm over the images of all GPUs'),
        Option('log', 'also log losses, metrics and some predictions there',
               choices=('tensorboard', 'wandb', 'mlflow')),
        Option('seed', "seed of every random choice; by default the config's, or a new one", seed),
        Switch('deterministic', 'use deterministic operations; slower on a GPU'),
    ),
)

_PRETRAIN = Command(
    'pretrain',
    'pretrain a backbone on images without labels',
    """Pretrain a backbone on images without labels: it imitates a trained network.

ptnt pretrain photos start.safetensors --backbone ptnt_ti
ptnt new labelled project --backbone ptnt_ti --weights start.safetensors
""",
    words=(
        Argument('images', 'folder of images, with its subfolders', Path),
        Argument('file', 'the file of weights to write, .safetensors (float16) or .pth', Path),
        _cfg_options('optim_wrapper.optimizer.lr=5e-4 model.mosaic=0'),
        _LOCAL_RANK,
    ),
    keywords=(
        Option('backbone', 'the network to train: a name or a registered class with its arguments, '
               'as for ptnt new', required=True),
        Option('weights', 'weights of the backbone to start from; by default random '
               'initialisation', metavar='WEIGHTS'),
        Option('teacher', 'the network to imitate: a backbone as for ptnt new, or a config or '
               'project whose backbone is trained', default='efficientnet_lite0', metavar='NAME'),
        Option('teacher_weights', "the teacher's weights; by default the published ones, or the "
               'best checkpoint of its project', metavar='WEIGHTS'),
        Option('views', 'number of views to train on in total', positive, 200_000, metavar='N'),
        Option('size', 'side of a view, at least 64; half of the steps see mosaics of four views',
               at_least(64), 128, metavar='PIXELS'),
        Option('batch', 'views per step and process, at least 2', at_least(2), 16, metavar='N'),
        Option('work_dir', 'folder of logs and checkpoints; by default work_dirs/FILE without its '
               'suffix', Path),
        Option('resume', 'continue from a checkpoint, by default the newest in the work dir',
               metavar='PATH', alone='auto'),
        Switch('overwrite', 'delete the output of an earlier run, and replace the file',
               instead_of='resume'),
        Switch('amp', 'mixed precision, on an accelerator or a CPU that computes in bfloat16'),
        Switch('compile', 'compile the backbone: minutes at the start, then up to twice as fast'),
        Option('log', 'also log losses there', choices=('tensorboard', 'wandb', 'mlflow')),
        Option('seed', 'seed of every random choice; by default 0', seed),
        _LAUNCHER,
    ),
)

_TEST = Command(
    'test',
    'evaluate a checkpoint',
    """Evaluate a checkpoint of a detector, a segmenter or a classifier.

ptnt test retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
""",
    words=(*_config(), _DATA_ROOT, _CHECKPOINT, _LOCAL_RANK, *_JSON),
    keywords=(
        _WORK_DIR,
        _LAUNCHER,
        Option('out', 'file for all predictions', Path, metavar='FILE.pkl'),
        Option('show_dir', 'folder for pictures of predictions', Path),
        Switch('tta', 'average over the sizes and the mirroring that training used'),
    ),
)

_INFER = Command(
    'infer',
    'predict on images, a folder, a video or a webcam',
    """Detect, segment or classify on images, a video or a webcam: drawn pictures and JSON.

ptnt infer photos retinanet_ptnt_s_1x work_dirs/retinanet_ptnt_s_1x/epoch_12.pth
ptnt infer photos model.onnx
""",
    words=(
        Argument('source', 'an image, a folder, a video, or 0 for the first webcam',
                 metavar='input'),
        *_config('model.test_cfg.max_per_img=20'),
        _CHECKPOINT,
    ),
    keywords=(
        Option('out', 'output folder: by default PROJECT/infer/INPUT or work_dirs/infer/INPUT',
               Path, metavar='DIR'),
        Switch('overwrite', 'replace the results of an earlier run'),
        Option('score_thr', 'lowest score of predictions in pictures and JSON: by default 0.3 for '
               'detectors, 0 for classifiers; segmenters have no scores and refuse it', score,
               metavar='S'),
        Switch('draw', 'write no pictures', default=True, flags=('--no-draw',)),
        Option('labels', 'also write what a detector finds as label files, to correct them in '
               'CVAT, Label Studio or LabelMe', choices=WRITER_NAMES),
        Option('tile', 'cut larger images into tiles of this side and merge their objects; for '
               'detectors. By default as in evaluations with the config; 0 for whole images',
               _TILE, metavar='PIXELS'),
        Option('overlap', 'share of a tile that overlaps the next one: 0.2 by default',
               number(float, 'a number from 0 and below 1', lambda value: 0 <= value < 1),
               metavar='SHARE'),
        Switch('track', 'give each object one number through a video or a folder of frames; needs '
               'the package trackers'),
        Switch('show', 'show a video or a webcam in a window; q ends it'),
        _DEVICE,
    ),
)

_EXPORT = Command(
    'export',
    'write a file that runs without torch, and check it',
    """Export a model to a file that runs without torch, and check it.

ptnt export retinanet_ptnt_s_1x epoch_12.pth --out model.onnx
""",
    words=(
        *_config('model.test_cfg.score_thr=0.3'),
        _CHECKPOINT,
        Switch('dynamic', 'images of any size and number: the default', instead_of='size'),
        Switch('int8', 'quantise to 8 bits; needs `calibrate`'),
    ),
    keywords=(
        Option('out', 'the file to write: .onnx, .xml (OpenVINO) or .pt2', Path, required=True),
        Option('format', 'by default from the suffix of `out`',
               choices=('onnx', 'openvino', 'torch-export')),
        Option('size', 'a fixed height and width in pixels: the fastest', positive,
               metavar=('H', 'W'), nargs=2),
        Switch('half', 'store weights as float16'),
        Option('calibrate', 'folder of typical images, to measure the ranges of values on',
               Path, metavar='FOLDER'),
        Switch('evaluate', "print the file's metrics on the test set"),
        _REPLACE,
    ),
)

_CHECK = Command(
    'check',
    'find problems in a config and its data',
    """Find faults in a config and its data that would stop a run or silently spoil its result.

ptnt check my_configs/custom_coco.py --gpus 8 --pretrained ptnt_s_82.0.pth.tar
""",
    words=(
        *_config(),
        _DATA_ROOT,
        Switch('verbose', 'also show what was checked and is right', flags=('-v', '--verbose')),
        *_JSON,
    ),
    keywords=(
        Option('pretrained', 'weights of the backbone: a file, or a name from ptnt weights',
               metavar='WEIGHTS'),
        Option('gpus', 'number of GPUs for training: 1 by default', positive, 1, 'N'),
        Switch('thorough', 'do not open weights; open only the images for a training step and an '
               'evaluation', default=True, flags=('--quick',)),
    ),
)

_VISUALIZE = Command(
    'visualize',
    'draw predictions, feature maps and attention',
    """Draw a network's predictions, feature maps, words, attention and position tables.

ptnt visualize configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg --box 1
""",
    words=(
        *_config(),
        Argument('files', 'a training checkpoint, by default the best one in the work dir, and '
                 'images', metavar='[CHECKPOINT] IMAGE', nargs='+'),
        Option('versus', 'compare: a different checkpoint, a different config, or a config and '
               'its checkpoint', metavar='OTHER', nargs='+'),
    ),
    keywords=(
        Option('at', 'show similarity and attention for this pixel (x, y) of the image; the middle '
               'by default', point, metavar='X,Y'),
        Option('box', 'show them for a detected box, by its number from 1', positive, metavar='N',
               instead_of='at'),
        Option('score_thr', 'the lowest score of a box: 0.3 by default', score, metavar='S'),
        Option('channels', 'channels to show, counted from 0; by default those that vary most',
               not_negative, (), 'C', nargs='+'),
        Option('blocks', 'blocks to show, counted from 1 in the whole backbone; by default the '
               'last of each stage, or the first, middle and last', positive, (), 'B', nargs='+'),
        Option('out', 'folder of the page: by default PROJECT/visualize or '
               'work_dirs/visualize/CONFIG', Path, metavar='DIR'),
        Switch('overwrite', 'replace an earlier page'),
        _DEVICE,
    ),
)

_REPORT = Command(
    'report',
    'write one page about training runs, or about data',
    """Write one page about training runs: curves, scores, errors and the worst images.

With --data, the page is about the data of a project or a config: its images as the network gets
them, problems, copies in two splits, classes and sizes.

Examples:
    ptnt report work_dirs/demo
    ptnt report work_dirs/demo work_dirs/demo_masks --out compared.html
    ptnt report --data bccd
""",
    words=(
        Argument('work_dirs', 'the work dir of a training run, or a project', Path,
                 metavar='WORK_DIR', nargs='*'),
        Option('data', 'write the page about the data of this project or config instead',
               metavar='CONFIG'),
    ),
    keywords=(
        Option('out', 'the page; by default WORK_DIR/report.html or PROJECT/data.html, where '
               'an earlier page is replaced', Path, metavar='FILE.html'),
        Switch('overwrite', 'replace the file of `out` if it exists'),
    ),
)

_CHECKPOINT_FILES = Command(
    'checkpoint',
    'inspect, convert or publish a checkpoint',
    """Inspect, convert or publish a checkpoint, without running any code in it.

ptnt checkpoint inspect ptnt_s.pth.tar
ptnt checkpoint convert epoch_12.pth weights.safetensors
ptnt checkpoint publish work_dirs/my_run/epoch_12.pth zoo/
ptnt checkpoint publish work_dirs/my_run/epoch_12.pth hf:OWNER/NAME
""",
    parts=(
        Command(
            'inspect',
            'show the content of a file, and whether it is complete',
            words=(_FILE, *_JSON),
        ),
        Command(
            'convert',
            'write only the weights, as plain tensors',
            words=(_FILE, Argument('out', 'a new .safetensors or .pth file', Path), _REPLACE),
        ),
        Command(
            'publish',
            'drop the optimizer, put the hash into the name',
            words=(
                _FILE,
                Argument('out', "a folder, the file's own by default, or hf:OWNER/NAME", nargs='?'),
                _REPLACE,
            ),
        ),
    ),
    needs_part=True,
)

_WEIGHTS = Command(
    'weights',
    'list the published weights, for --pretrained',
    """List the published weights of this family, which --pretrained downloads by name.

ptnt weights
ptnt train retinanet_tnt_s_1x --pretrained tnt_s --auto-scale-lr
""",
    words=_JSON,
)

_COMPLEXITY = Command(
    'complexity',
    'count parameters and multiply-adds',
    """Count the parameters and multiply-adds of an arch or a config's model, part by part.

Examples:
    ptnt complexity small --shape 256 256
    ptnt complexity tnt_small --shape 224 224
    ptnt complexity retinanet_ptnt_s_1x --shape 800 1280 --json cost.json
    ptnt complexity retinanet_ptnt_s_1x --shape 800 1280 --cfg-options model.backbone.position=peg
""",
    words=(
        Argument('model', 'tiny, small, medium or base (or ti, s, m, b), tnt_small, cpvt_small or '
                 'another arch, a config file, the folder of a project or a config name'),
        _cfg_options('model.backbone.arch=base'),
        Option('shape', 'image size in pixels', positive, metavar=('H', 'W'), nargs=2,
               required=True),
        Option('format', 'what to print', default='table', choices=('table', 'json')),
        *_JSON,
    ),
)

_CONFIGS = Command(
    'configs',
    'list the configs of this package, or copy one',
    """List the configs of this package, or copy one with its bases into a folder.

ptnt configs
ptnt configs list retinanet
ptnt configs copy retinanet_ptnt_s_1x my_configs
""",
    parts=(
        Command(
            'list',
            'print the names of all configs, or of a group',
            words=(Argument('group', 'such as retinanet', nargs='?'),),
        ),
        Command(
            'copy',
            'copy a config and its bases into a folder',
            words=(
                Argument('config', 'such as retinanet_ptnt_s_1x'),
                Argument('folder', 'the folder to copy them to', Path),
            ),
        ),
    ),
)

_DEMO = Command(
    'demo',
    'create the demo data set, without a download',
    """Create the demo data set: a few hundred pictures in COCO format, without a download.

ptnt demo
ptnt train demo_retinanet_ptnt_ti
""",
    words=(
        Argument('folder', 'data/demo by default', Path, Path('data/demo'), nargs='?'),
        Option('train', 'training pictures: 240 by default', positive, 240),
        Option('val', 'validation pictures: 60 by default', positive, 60),
        Option('seed', 'seed of every random choice: 0 by default', seed, 0),
        Switch('overwrite', 'replace a demo data set made with other arguments, or changed since'),
    ),
)

_DOCTOR = Command(
    'doctor',
    'show what is installed, and how to fix it',
    """Show what is installed, what is expected, and the command that fixes each problem.

ptnt doctor
""",
    words=_JSON,
)

_MMCV_OPS = Command(
    'mmcv-ops',
    "provide mmcv's operators to all programs",
    """Provide mmcv.ops to all programs of this Python if mmcv is not compiled.

ptnt mmcv-ops install
""",
    words=(
        Argument('action', 'status tries import mmcv.ops', choices=('install', 'remove', 'status')),
    ),
)

_COMPLETION = Command(
    'completion',
    'print the completion of bash, zsh or fish',
    """Print the completion script of a shell, for the tab key after ``ptnt``.

ptnt completion bash > ~/.local/share/bash-completion/completions/ptnt
ptnt completion zsh > ~/.zfunc/_ptnt
ptnt completion fish > ~/.config/fish/completions/ptnt.fish
""",
    words=(Argument('shell', 'whose script to print', choices=('bash', 'zsh', 'fish')),),
)

COMMANDS = {
    command.name: command
    for command in (
        _NEW, _PRETRAIN, _TRAIN, _TEST, _INFER, _EXPORT, _CHECK, _VISUALIZE, _REPORT,
        _CHECKPOINT_FILES, _WEIGHTS, _COMPLEXITY, _CONFIGS, _DEMO, _DOCTOR, _MMCV_OPS, _COMPLETION,
    )
}
"""By name, in the order of ``ptnt --help``."""

# fmt: on
# ---- Messages

_NAMED = re.compile(r'`(?:([a-z_0-9]+)(?:=([^`\n]*))?|(\w+(?:\.\w+)+=[^`\n]*))`')
_FLAGS = {option.name: option for command in COMMANDS.values() for option in command.keywords}
_FLAGS |= dict(options=_config()[1], data_root=_DATA_ROOT)  # arguments of read_config


def as_flags(text: str) -> str:
    """The text of a message with flags in place of the arguments that it names between backquotes.

    =================================  ==============================================
    `resume`                           --resume
    `work_dir=runs/1`                  --work-dir runs/1
    `overwrite=True`, `resume=auto`    --overwrite, --resume
    `draw=False`                       --no-draw
    `optim_wrapper.clip_grad=None`     --cfg-options optim_wrapper.clip_grad=None
    =================================  ==============================================

    What is not an option or a setting stays as it is.
    """
    return _NAMED.sub(_as_flag, text)


def _as_flag(found: re.Match[str]) -> str:
    name, value, changed = found.groups()
    if changed:
        return f'--cfg-options {changed}'
    return _FLAGS[name].as_typed(value) if name in _FLAGS else found[0]


# ---- The page

_FEWEST_ROWS = 6  # of a command with its own table, those above included
_HEAD = '\n| Argument | Meaning |\n|---|---|'


def with_tables(page: str) -> str:
    """The page ``docs/options.md``, whose end are the tables of all options."""
    mark = '<!-- options -->\n'
    return page[: page.index(mark)] + mark + '\n'.join(_tables())


def _tables() -> Iterator[str]:
    """Tables: for what several commands share, for each larger command, and for all others."""
    commands = {
        command.name if part is command else f'{command.name} {part.name}': {
            f'| `{_shown(argument)}` | {as_flags(argument.about)} |': _shown(argument).split()[0]
            for group in part.choices()
            for argument in group
            if argument.about
        }
        for command in COMMANDS.values()
        for part in (command, *command.parts)
    }
    counts = Counter(row for rows in commands.values() for row in rows)
    yield '\n## Several commands'
    yield _HEAD
    yield from (row for row, count in counts.items() if count > 1)
    above = '[above](#several-commands)'
    own = {name: [row for row in rows if counts[row] == 1] for name, rows in commands.items()}
    shared = {
        name: ', '.join(f'`{word}`' for row, word in rows.items() if counts[row] > 1)
        for name, rows in commands.items()
    }
    small = [name for name, rows in commands.items() if len(rows) < _FEWEST_ROWS]
    for name in (name for name in own if name not in small):
        yield f'\n## ptnt {name}'
        yield _HEAD
        yield from own[name]
        if shared[name]:
            yield f'\nAlso {shared[name]}: {above}.'
    yield '\n## Other commands\n\n| Command | Argument | Meaning |\n|---|---|---|'
    for name in small:
        if shared[name]:
            yield f'| `ptnt {name}` | {shared[name]} | {above} |'
        yield from (f'| `ptnt {name}` {row}' for row in own[name])


def _shown(argument: Argument) -> str:
    """As the help shows it: '--size H W'."""
    choices = '{' + ','.join(argument.choices) + '}' if argument.choices else argument.name.upper()
    value = argument.metavar or choices
    value = ' '.join(value) if isinstance(value, tuple) else value
    if not isinstance(argument, Option):
        return value
    return ', '.join(argument.words) + ('' if isinstance(argument, Switch) else f' {value}')


if __name__ == '__main__':
    page_file = Path(sys.argv[1])
    page_file.write_text(with_tables(page_file.read_text(encoding='utf-8')), encoding='utf-8')
