"""The comparison with YOLO: the conversion of labels, the budget, and the evaluation of both."""

import json
from pathlib import Path

import pytest
from logs import evaluation, write_log
from PIL import Image

from .workplace import CONFIG, load_tool

tool = load_tool('dev/peers')

# The ids are neither consecutive nor in the order of the names.
CATEGORIES = [dict(id=7, name='wheel'), dict(id=3, name='apple')]


def box(image: int, category: int, bbox: list[float], crowd: int = 0) -> dict:
    area = bbox[2] * bbox[3]
    return dict(image_id=image, category_id=category, bbox=bbox, area=area, iscrowd=crowd)


BOXES = [
    box(1, 3, [10, 20, 30, 10]),
    box(1, 7, [-10, 70, 40, 20]),  # reaches beyond two sides
    box(1, 7, [0, 0, 50, 50], crowd=1),
    box(1, 3, [120, 0, 10, 10]),  # outside
    box(9, 7, [50, 40, 50, 40]),
]


def write_labels(file: Path, boxes: list[dict]):
    """Annotations of three images of 100 x 80 pixels, the second without objects, as read."""
    images = [dict(id=i, file_name=f'a/{i}.png', width=100, height=80) for i in (1, 4, 9)]
    annotations = [entry | dict(id=i) for i, entry in enumerate(boxes, start=1)]
    content = dict(images=images, annotations=annotations, categories=CATEGORIES)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return tool.read_coco(file)


def draw_images(folder: Path) -> Path:
    (folder / 'a').mkdir(parents=True)
    for i in (1, 4, 9):
        Image.new('RGB', (100, 80), (i, 0, 0)).save(folder / 'a' / f'{i}.png')
    return folder


def test_labels_become_shares_of_the_image_in_the_order_of_the_categories(tmp_path: Path):
    coco = write_labels(tmp_path / 'train.json', BOXES)
    lines = tool.yolo_lines(coco, 1)
    # wheel is 0 and apple is 1; the crowd and the box outside are omitted.
    assert [line.split()[0] for line in lines] == ['1', '0']
    values = [list(map(float, line.split()[1:])) for line in lines]
    assert values == [[0.25, 0.3125, 0.3, 0.125], [0.15, 0.9375, 0.3, 0.125]]


def test_the_layout_has_every_image_of_both_splits(tmp_path: Path):
    coco = write_labels(tmp_path / 'train.json', BOXES)
    images = draw_images(tmp_path / 'images')
    file = tool.write_yolo_data(dict(train=coco, val=coco), images, tmp_path / 'yolo')
    data = json.loads(file.read_text())
    assert data['names'] == ['wheel', 'apple']
    for split in ('train', 'val'):
        folder = Path(data['path'], data[split])
        assert sorted(image.name for image in folder.iterdir()) == ['1.png', '4.png', '9.png']
        # Ultralytics may write to them.
        assert not any(image.is_symlink() for image in folder.iterdir())
        labels = tmp_path / 'yolo' / 'labels' / split
        assert (labels / '4.txt').read_text() == ''
        assert (labels / '9.txt').read_text() == '0 0.750000 0.750000 0.500000 0.500000'


@pytest.mark.parametrize(('budget', 'epochs'), [(11.9, 9), (12.0, 10), (1.0, 1)])
def test_as_many_epochs_as_fit_beside_the_start(budget: float, epochs: int):
    # A start of 2 minutes, and 1 for each epoch.
    assert tool.epochs_within(budget, [3.0, 5.0]) == epochs


def test_the_cpu_time_of_children_counts(tmp_path: Path):
    spin = 'import time\nwhile time.process_time() < 0.5: pass'
    child = f'import subprocess, sys; subprocess.run([sys.executable, "-c", {spin!r}])'
    minutes = tool.run_command([tool.sys.executable, '-c', child], tmp_path / 'log')
    assert 0.5 / 60 <= minutes < 5 / 60


def test_a_command_that_fails_names_its_log(tmp_path: Path):
    with pytest.raises(tool.UserError, match='child.log'):
        tool.run_command([tool.sys.executable, '-c', 'exit(3)'], tmp_path / 'child.log')
    assert (tmp_path / 'child.log').is_file()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a config, images and labels, of a detector of two classes."""
    folder = tmp_path / 'cells'
    for split in ('train', 'val'):
        write_labels(folder / 'labels' / f'{split}.json', BOXES)
    images = draw_images(tmp_path / 'photos')
    lines = f'_base_ = {str(CONFIG)!r}\nimages = {str(images)!r}\nsize = (96, 64)\n'
    (folder / 'config.py').write_text(lines)
    return folder


@pytest.fixture
def commands(monkeypatch) -> list[list[str]]:
    """The commands that were run; each leaves what the real one would, at once.

    The project finds one of two objects of each class, and YOLO all.
    """
    commands: list[list[str]] = []
    found = [entry | dict(score=0.9) for entry in BOXES if not entry['iscrowd']]

    def run(command: list, log: Path, **environment: str) -> float:
        words = [str(word) for word in command]
        commands.append(words)
        settings = dict(word.split('=', 1) for word in words if '=' in word)
        if 'uv' in words:
            return 0
        if 'detect' not in words:
            work_dir = Path(words[words.index('--work-dir') + 1])
            if 'test' in words:
                ours = Path(settings['test_evaluator.outfile_prefix'] + '.bbox.json')
                ours.write_text(json.dumps(found[:2]))
                return 0
            file = write_log(work_dir, '20260101_000000', evaluation(12, 0.1))
            file.with_name('config.py').write_text(
                f'_base_ = {str(CONFIG)!r}\nrandomness = dict(seed=5)\n'
            )
            (work_dir / 'last_checkpoint').write_text('epoch_12.pth')
            return 6.0
        assert environment['YOLO_OFFLINE'] == 'true'
        if 'val' in words:
            # Ultralytics counts classes from 1.
            classes = {7: 1, 3: 2}
            theirs = [entry | dict(category_id=classes[entry['category_id']]) for entry in found]
            folder = Path(settings['project'], settings['name'])
            folder.mkdir()
            (folder / 'predictions.json').write_text(json.dumps(theirs))
            return 0
        log.write_text('YOLO11n summary: 181 layers, 2,590,425 parameters, 0 gradients\n')
        # A start of half a minute, and a quarter for each epoch.
        return 0.5 + 0.25 * int(settings['epochs'])

    monkeypatch.setattr(tool, 'run_command', run)
    return commands


def compare(tmp_path: Path, project: Path, name: str) -> int:
    (tmp_path / 'docs').mkdir()
    page = tmp_path / 'docs' / 'results.md'
    page.write_text('<!-- runs: peers -->\n\nold\n\n<!-- end -->\n')
    words = [project, '--name', name, '--env', tmp_path / 'env', '--out', tmp_path / 'out']
    words += ['--docs', tmp_path / 'docs', '--seed', 5, '--yolo', 'batch=4']
    return tool.main(list(map(str, words)))


def test_both_are_trained_alike_and_evaluated_by_the_same_code(
    tmp_path: Path, project: Path, commands: list[list[str]]
):
    assert compare(tmp_path, project, 'cells_ptnt_ti') == 0
    trained = [words for words in commands if 'detect' in words and 'train' in words]
    assert len(trained) == 3
    for words in trained:
        assert {'pretrained=False', 'amp=False', 'imgsz=96', 'seed=5', 'batch=4'} < set(words)
    assert 'epochs=22' in trained[-1] and 'close_mosaic=0' not in trained[-1]
    results = tmp_path / 'docs' / 'results'
    ours, theirs = (
        json.loads((results / f'peers_cells_{name}_5.json').read_text())
        for name in ('ptnt_ti', 'yolo11n')
    )
    # Of COCO's 101 recalls, those up to 0.50 are reached.
    assert ours['evaluations'] == {'12': {'box AP': 50.5, 'box AP50': 50.5}}
    assert theirs['evaluations'] == {'22': {'box AP': 100.0, 'box AP50': 100.0}}
    assert (ours['cpu_minutes'], theirs['cpu_minutes']) == (6.0, 6.0)
    lines = (tmp_path / 'docs' / 'results.md').read_text().splitlines()
    row = "| `cells`: Ultralytics' YOLO11n | random | 100.0 | 100.0 | 22 | 1 | 2.6 M | 6.0 |"
    assert row in lines and 'old' not in lines


def test_an_unknown_network_is_refused_before_the_work(
    tmp_path: Path, project: Path, commands: list[list[str]], capsys
):
    assert compare(tmp_path, project, 'cells_ptnt') == 1
    assert 'cells_ptnt' in capsys.readouterr().err and not commands
