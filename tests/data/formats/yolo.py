"""YOLO: labelformat's, Roboflow's, CVAT's, darknet, polygons."""

from pathlib import Path

from labelformat.formats.yolov8 import YOLOv8ObjectDetectionOutput

from ..made import COUNT, NAMES, SIZE, Sample, as_labelformat, boxes_of, draw, draw_all
from ..planting import cut, remove, replace, rewrite


def plant_yaml_bomb(root: Path) -> None:
    """Add a third name, which expands to 9 ** 30 letters."""
    file = root / 'data.yaml'
    bomb = ['l0: &l0 [x, x, x, x, x, x, x, x, x]']
    bomb += [f'l{i}: &l{i} [{", ".join([f"*l{i - 1}"] * 9)}]' for i in range(1, 30)]
    file.write_text('\n'.join((*bomb, file.read_text(), 'names: [cell, dot, *l29]\n')))


def yolo(root: Path) -> Path:
    """labelformat's YOLOv8."""
    draw_all(root / 'images')
    YOLOv8ObjectDetectionOutput(root / 'data.yaml', 'train').save(as_labelformat())
    return root


def yolo_line(index: int, corners: tuple[float, ...]) -> str:
    left, top, right, bottom = corners
    width, height = SIZE
    centre = ((left + right) / 2 / width, (top + bottom) / 2 / height)
    return ' '.join(map(str, (index, *centre, (right - left) / width, (bottom - top) / height)))


def write_yolo_labels(folder: Path, numbers: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in numbers:
        lines = [yolo_line(NAMES.index(name), corners) for name, corners in boxes_of(i)]
        (folder / f'im{i}.txt').write_text('\n'.join(lines) + '\n')


def yolo_roboflow(root: Path) -> Path:
    """Roboflow's YOLO: paths lead out of the folder, as if the settings were one folder below."""
    for split, numbers in (('train', range(4)), ('valid', range(4, COUNT))):
        for i in numbers:
            draw(root / split / 'images' / f'im{i}.png', i)
        write_yolo_labels(root / split / 'labels', numbers)
    (root / 'data.yaml').write_text(
        'train: ../train/images\nval: ../valid/images\ntest: ../test/images\n'
        f'nc: 2\nnames: {list(NAMES)}\n\nroboflow:\n  workspace: none\n'
    )
    return root


def yolo_lists(root: Path) -> Path:
    """CVAT's 'Ultralytics YOLO': lists of images, and names by number."""
    for i in range(COUNT):
        draw(root / 'images' / 'all' / f'im{i}.png', i)
    write_yolo_labels(root / 'labels' / 'all', range(COUNT))
    for split, numbers in (('train', range(4)), ('val', range(4, COUNT))):
        names = (f'./images/all/im{i}.png' for i in numbers)
        (root / f'{split}.txt').write_text('\n'.join(names) + '\n')
    (root / 'data.yaml').write_text(
        'path: .\ntrain: train.txt\nval:\n  - val.txt\nnames:\n  0: cell\n  1: dot\n'
    )
    return root


def darknet(root: Path) -> Path:
    """CVAT's 'YOLO 1.1' and labelImg: labels next to the images, names in a file."""
    draw_all(root / 'obj_train_data')
    write_yolo_labels(root / 'obj_train_data', range(COUNT))
    (root / 'obj.names').write_text('cell\ndot\n')
    (root / 'obj.data').write_text('classes = 2\nnames = data/obj.names\n')
    return root


def yolo_polygons(root: Path) -> Path:
    """ultralytics' segments: polygons, with a box among them."""
    yolo(root)
    for i in range(COUNT):
        (name, (left, top, right, bottom)), (_, dot) = boxes_of(i)
        # Four corners would be those of a rotated box.
        points = (left, top, (left + right) / 2, top, right, top, right, bottom, left, bottom)
        scaled = (value / SIZE[k % 2] for k, value in enumerate(points))
        polygon = ' '.join(map(str, (NAMES.index(name), *scaled)))
        corners = (dot[0], dot[1], dot[2], dot[1], dot[2], dot[3], dot[0], dot[3])
        other = ' '.join(str(value / SIZE[k % 2]) for k, value in enumerate(corners))
        second = yolo_line(1, dot) if i == 0 else f'1 {other}'
        (root / 'labels' / f'im{i}.txt').write_text(f'{polygon}\n{second}\n')
    return root


SAMPLES = [
    Sample(
        yolo,
        splits={'train': COUNT},
        faults={
            'three numbers': replace('im0.txt', b'0 0.5 0.5'),
            'even polygon': replace('im0.txt', b'0 0.1 0.1 0.5 0.1 0.5 0.5 0.2'),
            'nan': replace('im0.txt', b'0 nan 0.5 0.1 0.1'),
            'binary': replace('im0.txt', b'\xff\xfe\x00\x81'),
            'image missing': remove('*.png'),
            'image cut': replace('*.png', b'\x89PNG\r\n'),
            'image truncated': cut('*.png'),
            'folder missing': rewrite('data.yaml', 'train: images', 'train: nowhere'),
            'path leads out': rewrite('data.yaml', 'train: images', 'train: ../../../../etc'),
        },
        emptied={
            'empty': replace('im0.txt', b''),
            'label missing': remove('im0.txt'),
        },
        harmless={
            'wrong count of names': rewrite('data.yaml', 'nc: 2', 'nc: 9'),
            'absolute path': rewrite('data.yaml', 'path: .', 'path: /datasets/mine'),
            'yaml bomb': plant_yaml_bomb,
        },
    ),
    Sample(yolo_roboflow, splits={'train': 4, 'val': 2}),
    Sample(yolo_lists, splits={'train': 4, 'val': 2}),
    Sample(darknet),
    Sample(yolo_polygons, splits={'train': COUNT}),
]
