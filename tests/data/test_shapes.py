"""Shapes that are not masks are neither lost in silence nor learned as background."""

import json
from pathlib import Path

import pytest

from data import made
from data.formats.cvat import cvat_shapes
from data.formats.labelme import labelme
from data.formats.voc import voc
from data.formats.yolo import yolo
from data.made import read
from ptnt_mm.api import create_project
from ptnt_mm.workbench.data.recognise import summary


def with_shape(root: Path, **shape: object) -> Path:
    """Polygons, and one other shape in the last three images, where it is alone in the last."""
    labelme(root)
    for i in range(made.COUNT):
        file = root / f'im{i}.json'
        content = json.loads(file.read_text())
        del content['shapes'][1]
        if i > 2:
            content['shapes'].append(content['shapes'][0] | dict(label='door') | shape)
        if i == made.COUNT - 1:
            del content['shapes'][0]
        file.write_text(json.dumps(content))
    return root


def cvat(root: Path, shape: str) -> Path:
    cvat_shapes(root)
    file = root / 'annotations.xml'
    file.write_text(file.read_text().replace('<points label="dot" points="3,3" z_order="0"/>', ''))
    file.write_text(file.read_text().replace('</image>', f'{shape}</image>'))
    return root


def objects_of(project: Path) -> dict[str, list[dict]]:
    """The annotations of each image in the files of a project."""
    found: dict[str, list[dict]] = {}
    for split in ('train', 'val'):
        content = json.loads((project / 'labels' / f'{split}.json').read_text())
        for image in content['images']:
            name = image['file_name']
            found[name] = [a for a in content['annotations'] if a['image_id'] == image['id']]
    return found


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is tried, which takes a second."""
    monkeypatch.setattr('ptnt_mm.workbench.project.create.measure_memory', lambda config: None)


def test_a_rectangle_between_polygons_is_a_mask_of_four_points(tmp_path: Path, untried):
    data = with_shape(tmp_path / 'data', shape_type='rectangle', points=[[50, 10], [90, 30]])
    lines: list[str] = []
    create_project(data, tmp_path / 'project', task='instance', on_line=lines.append)
    found = objects_of(tmp_path / 'project')
    assert sum(map(len, found.values())) == 8 and all(found.values())
    (door,) = found['im5.png']
    assert door['segmentation'] == [[50, 10, 90, 10, 90, 30, 50, 30]] and door['area'] == 800
    assert any('3 door' in line for line in lines)


@pytest.mark.parametrize(
    ('kind', 'points'),
    [
        ('point', [[5, 5]]),
        ('line', [[5, 5], [9, 9]]),
        ('linestrip', [[5, 5], [9, 9], [20, 5]]),
        ('points', [[5, 5], [9, 9]]),
        ('cuboid', [[5, 5], [9, 9], [20, 5]]),
    ],
)
def test_shapes_without_area_are_counted_with_their_class(tmp_path: Path, kind: str, points: list):
    labels = read(with_shape(tmp_path, shape_type=kind, points=points))
    assert any(line.startswith('3 shapes') and '(3 door)' in line for line in summary(labels))
    # The image that has nothing else would be background.
    assert {image.path.stem for image in labels.images} == {f'im{i}' for i in range(5)}


def test_objects_that_labelme_ignores_are_counted(tmp_path: Path):
    labels = read(with_shape(tmp_path, label='__ignore__'))
    assert any(line.startswith('3 objects') and '__ignore__' in line for line in summary(labels))
    assert {image.path.stem for image in labels.images} == {f'im{i}' for i in range(5)}


@pytest.mark.parametrize('tag', ['points', 'polyline', 'cuboid', 'skeleton'])
def test_shapes_of_cvat_without_area_are_counted(tmp_path: Path, tag: str):
    labels = read(cvat(tmp_path, f'<{tag} label="door" points="3,3;9,9"></{tag}>'))
    assert any('6 door' in line for line in summary(labels))


@pytest.mark.parametrize('angle', ['', '<cx>9</cx><cy>9</cy><w>9</w><h>9</h><angle>inf</angle>'])
def test_boxes_of_voc_without_corners_are_counted(tmp_path: Path, angle: str):
    """As roLabelImg writes rotated boxes."""
    voc(tmp_path)
    for file in tmp_path.rglob('*.xml'):
        text = file.read_text().replace('bndbox>', 'robndbox>', 2)
        file.write_text(text.replace('<robndbox>', f'<robndbox>{angle}', 1))
    (line,) = summary(read(tmp_path))
    assert line.startswith('6 objects') and '(6 cell)' in line and 'robndbox' in line


def test_keypoints_are_said_to_be_left_out(tmp_path: Path):
    yolo(tmp_path)
    file = tmp_path / 'data.yaml'
    file.write_text(f'{file.read_text()}\nkpt_shape: [2, 3]\n')
    for label in tmp_path.rglob('labels/*.txt'):
        lines = label.read_text().splitlines()
        label.write_text('\n'.join(f'{line} 0.1 0.1 2 0.2 0.2 1' for line in lines))
    labels = read(tmp_path)
    assert {len(image.objects) for image in labels.images} == {2} and not labels.has_masks()
    assert any('keypoints' in note for note in labels.notes)


def test_tags_of_cvat_are_no_classes_of_objects(tmp_path: Path):
    file = cvat_shapes(tmp_path) / 'annotations.xml'
    tag = '<label><name>night</name><type>tag</type></label>'
    file.write_text(file.read_text().replace('<labels>', f'<labels>{tag}'))
    assert read(tmp_path).classes == list(made.NAMES)
