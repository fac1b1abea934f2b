"""The page about data: its content for each task, damaged data, the command, and the browser."""

import base64
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import PHONE, chromium, needs_chromium, quiet_page, width
from data import made
from data.formats.class_masks import colour_masks
from data.formats.coco import label_studio
from data.formats.folders import class_folders
from data.formats.yolo import yolo_roboflow
from mmengine.registry import TRANSFORMS, DefaultScope
from PIL import Image
from project.conftest import untried, web  # noqa: F401

from ptnt_mm import api
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.pages.data import content
from ptnt_mm.workbench.pages.data.splits import read_data, resized

MAKERS = dict(
    detection=yolo_roboflow,
    instance=label_studio,
    semantic=colour_masks,
    classification=class_folders,
)


@pytest.fixture(scope='module')
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A project of each task."""
    root = tmp_path_factory.mktemp('projects')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('ptnt_mm.workbench.project.create._memory', lambda folder: None)
        for task, make in MAKERS.items():
            data = make(root / f'{task}_data')
            api.create_project(data, root / task, task=task, size=96, weights='none')
    return {task: root / task for task in MAKERS}


def content_of(folder: Path) -> dict:
    return content.data_content(ConfigView(read_config(str(folder))), folder)


@pytest.mark.parametrize('task', MAKERS)
def test_the_page_of_each_task(task: str, projects):
    found = content_of(projects[task])
    assert not found['data'].notes and not found['network'].notes
    inputs = found['network'].inputs
    assert 1 < len(inputs) <= 20
    assert all(image.name and image.picture['picture'] for image in inputs)
    counts = {row.name: sum(row.counts) for row in found['classes']}
    assert all(counts.values())
    if task in ('detection', 'instance'):
        assert set(counts) == set(made.NAMES)
        assert all({item['label'] for item in image.objects} <= set(made.NAMES) for image in inputs)
        assert any(item['outline'] for i in inputs for item in i.objects) == (task == 'instance')
    elif task == 'semantic':
        assert all(image.map for image in inputs)
        shares = np.array([row.pixels for row in found['classes']])
        assert np.allclose(shares.sum(axis=0), 1)
    else:
        assert {image.label for image in inputs} <= set(counts)
    assert sum(row.number for row in found['sizes']) == sum(map(len, found['data'].splits.values()))


@pytest.mark.parametrize('changes', [{}, dict(bgr_to_rgb=False), dict(mean=None, std=None)])
def test_boxes_are_drawn_where_the_objects_are_in_the_colours_of_the_file(projects, changes: dict):
    """In the picture made from the tensor, cells are red in their boxes, and dots are green.

    The hosts load BGR, and the preprocessor may convert and normalise it, or not.
    """
    config = read_config(str(projects['detection']))
    data = config.train_dataloader.dataset
    config.model.data_preprocessor.update(changes)
    # Colours stay as they are.
    data.pipeline = [step for step in data.pipeline if step.type != 'PhotoMetricDistortion']
    view = ConfigView(config)
    import_host(view.scope)
    found = read_data(view, 20)
    assert found.kind == 'object' and [len(images) for images in found.splits.values()] == [4, 2]
    inputs = content._network(view, found).inputs
    assert sum(len(image.objects) for image in inputs) == 8
    for image in inputs:
        encoded = base64.b64decode(image.picture['picture'].partition(',')[2])
        pixels = np.asarray(Image.open(io.BytesIO(encoded)))
        for item in image.objects:
            x, y, w, h = map(round, item['box'])
            red, green, _ = pixels[y + 2 : y + h - 2, x + 2 : x + w - 2].reshape(-1, 3).mean(0)
            assert (red > green + 80) == (item['label'] == 'cell')
            assert (green > red + 80) == (item['label'] == 'dot')


@pytest.mark.parametrize(
    'steps',
    [
        [dict(type='Resize', scale=(300, 200), keep_ratio=True)],
        [dict(type='Resize', scale=(300, 200))],
        [dict(type='Resize', scale_factor=0.5)],
        [dict(type='RandomResize', scale=(300, 200), ratio_range=(2, 2), keep_ratio=True)],
        [dict(type='RandomResize', scale=[(300, 200), (300, 200)], keep_ratio=True)],
        [dict(type='RandomChoiceResize', scales=[(300, 200), (300, 200)], keep_ratio=True)],
        [dict(type='RandomChoice', transforms=[[dict(type='Resize', scale=(64, 32))]])],
        [dict(type='RandomChoice', transforms=[dict(type='Resize', scale=(64, 32))])],
        [dict(type='RandomChoiceResize', scales=(300, 200))],
        [dict(type='CenterCrop', crop_size=40), dict(type='Resize', scale_factor=2.0)],
        [dict(type='mmdet.FixShapeResize', width=300, height=200)],
        [dict(type='mmseg.ResizeShortestEdge', scale=200, max_size=250)],
        [dict(type='mmseg.ResizeShortestEdge', scale=(300, 200), max_size=1000)],
        [
            dict(
                type='RandomChoiceResize',
                scales=[200, 200],
                resize_type='mmseg.ResizeShortestEdge',
                max_size=1000,
            )
        ],
        [dict(type='RandomFlip', prob=1.0)],
    ],
)
def test_the_size_as_trained_is_that_of_mmcv(steps):
    import mmseg.datasets.transforms  # noqa: F401
    from mmcv.transforms import Compose
    from mmengine.registry import TRANSFORMS

    size = (97, 61)
    pixels = np.zeros((*size[::-1], 3), np.uint8)
    with DefaultScope.overwrite_default_scope('mmengine'):
        result = Compose([TRANSFORMS.build(step) for step in steps])(
            dict(img=pixels, img_shape=size[::-1])
        )
    kind = 'image' if steps[0]['type'] == 'CenterCrop' else 'object'
    assert np.allclose(resized(size, steps, kind), result['img'].shape[1::-1], atol=0.6)


def test_a_random_size_is_the_middle_of_its_range():
    step = dict(type='RandomResize', scale=(100, 100), ratio_range=(0.5, 1.5), keep_ratio=True)
    assert resized((50, 25), [step]) == (100, 50)
    choices = [step, [dict(type='Resize', scale=(200, 100))]]
    choice = dict(type='RandomChoice', transforms=choices)
    assert resized((50, 25), [choice]) == (150, 75)
    assert resized((50, 25), [choice | dict(prob=[0.9, 0.1])]) == pytest.approx((110, 55))


@pytest.mark.parametrize('crop', ['RandomResizedCrop', 'EfficientNetRandomCrop', 'CenterCrop'])
def test_a_crop_resizes_images_of_a_classifier_but_no_objects(crop: str):
    step = dict(type=crop, crop_size=224)
    assert resized((50, 25), [step], 'image') == (224, 224)
    assert resized((50, 25), [step], 'object') == resized((50, 25), [step], 'mask') == (50, 25)


def test_a_pipeline_whose_sizes_cannot_be_read_is_a_reason_on_the_page(projects, tmp_path: Path):
    folder = shutil.copytree(projects['detection'], tmp_path / 'project')
    config = read_config(str(folder))
    config.work_dir = str(folder / 'work_dir')
    steps = config.train_dataloader.dataset.pipeline
    steps.append(dict(type='RandomResize', scale='large'))
    found = content.data_content(ConfigView(config), folder)
    assert not found['data'].trained and len(found['data'].notes) == 1
    assert sum(bar.number for bar in found['sizes']) == 6
    assert [sum(row.counts) for row in found['classes']] and api.report_data(config).is_file()


@TRANSFORMS.register_module()
class OtherLabels:
    """Gives objects labels that are no classes."""

    def __call__(self, results: dict) -> dict:
        results['gt_bboxes_labels'] = np.resize([0, 30, -1], len(results['gt_bboxes_labels']))
        return results


def test_labels_beyond_the_classes_are_drawn_by_their_numbers(projects):
    config = read_config(str(projects['detection']))
    config.train_dataloader.dataset.pipeline.insert(-1, dict(type='mmengine.OtherLabels'))
    found = content.data_content(ConfigView(config), projects['detection'])
    objects = [item for image in found['network'].inputs for item in image.objects]
    colours = {item['label']: item['colour'] for item in objects}
    assert list(colours) and colours.keys() <= {'cell', '30', '-1'}
    assert colours['cell'] != colours['30'] == '#808080' == colours.get('-1', '#808080')


def test_a_page_says_whether_some_or_all_images_are_missing(projects, monkeypatch):
    def remark(left: int) -> str:
        def fails(*args: object) -> dict:
            nonlocal left
            left -= 1
            if left < 0:
                raise ValueError('a planted fault')
            return forward(*args)

        monkeypatch.setattr(DetDataPreprocessor, 'forward', fails)
        found = content_of(projects['detection'])
        (text,) = [text for text, _ in found['remarks'] if 'a planted fault' in text]
        return text

    import_host('mmdet')
    from mmdet.models import DetDataPreprocessor

    forward = DetDataPreprocessor.forward
    assert remark(0).startswith('The ') and remark(1).startswith('Some ')


def test_copies_in_two_splits_and_objects_below_the_stride(projects, tmp_path: Path):
    data = yolo_roboflow(tmp_path / 'data')
    Image.open(data / 'train/images/im0.png').save(data / 'valid/images/im4.png')
    labels = data / 'train/labels/im1.txt'
    labels.write_text(labels.read_text() + '1 0.5 0.5 0.03 0.03\n')  # 3 x 2 pixels
    project = tmp_path / 'project'
    api.create_project(data, project, size=96, weights='none')
    found = content_of(project)
    (copy,) = found['data'].copies
    assert copy.splits == ('train', 'val')
    assert [path.name for path in copy.images] == ['im0.png', 'im4.png']
    assert [len(pair) for pair in found['pairs']] == [2]
    rows = {row.name: row for row in found['classes']}
    assert found['network'].stride == 8
    assert rows['dot'].below(8) == 1 and rows['cell'].below(8) == 0
    assert sum(bar.number for bar in found['sides'] if bar.is_low) == 1
    assert {place for _, place in found['remarks']} >= {'copies', 'sizes'}


def test_problems_are_beside_their_images(projects, tmp_path: Path):
    folder = shutil.copytree(projects['detection'], tmp_path / 'project')
    known = [image.path for image in content_of(folder)['data'].splits['train']][:3]
    lines = [
        'labels/im0.txt: lines with too few numbers: line 4 has 2',
        'all.json: objects listed twice: dot [60, 20, 16, 20] in im1.png (96x64)',
        f'{known[2]}: images not readable: cut off',
        'all.json: masks that cannot be drawn: dot in im2.png: odd',
        'other.json: cannot be read: empty',
    ]
    (folder / 'problems.txt').write_text('\n'.join(lines))
    first, second, third, last = (group for group, *_ in content_of(folder)['problems'])
    assert [group.image for group in (first, second, third)] == known
    assert second.boxes == [(60, 20, 16, 20)] and not first.boxes
    assert len(third.lines) == 2
    assert last.image is None and last.name == 'other.json'


@pytest.mark.usefixtures('untried')
def test_problems_are_read_as_a_reader_of_labels_writes_them(tmp_path: Path):
    """A box that is clipped, one of negative size, and an unusable mask, beside sound ones."""
    boxes = {'im 0.png': (90, 10, 50, 20.5), 'im1.JPG': (60, 20, -16, 20), 'im2.png': (5, 5, 9, 9)}
    data = tmp_path / 'data'
    paths = [made.draw(data / 'images' / name, i) for i, name in enumerate(boxes)]
    content = dict(images=[], annotations=[], categories=[])
    content['categories'] = [dict(id=1, name='cell'), dict(id=2, name='a dot')]
    for i, (name, box) in enumerate(boxes.items()):
        content['images'].append(dict(id=i, file_name=name, width=96, height=64))
        objects = [(1, (k, k, 20, 20), [[k, k, k + 20, k, k, k + 20]]) for k in range(9)]
        objects.append((2, box, [[0, 0]] if name == 'im2.png' else []))
        for category, bbox, mask in objects:
            entry = dict(image_id=i, category_id=category, bbox=bbox, segmentation=mask)
            content['annotations'].append(dict(entry, id=len(content['annotations'])))
    (data / 'all.json').write_text(json.dumps(content))
    api.create_project(data, tmp_path / 'project', task='detection', size=96, weights='none')
    groups = {group.image: group for group, *_ in content_of(tmp_path / 'project')['problems']}
    assert groups.keys() == set(paths)
    assert groups[paths[0]].boxes == [(90, 10, 50, 20.5)]
    assert groups[paths[1]].boxes == [(44, 20, 16, 20)]


def test_a_missing_host_and_a_failing_pipeline_are_reasons_on_the_page(projects, tmp_path: Path):
    folder = shutil.copytree(projects['detection'], tmp_path / 'project')
    config = read_config(str(folder))
    config.work_dir = str(folder / 'work_dir')
    config.train_dataloader.dataset.pipeline[-1] = dict(type='NoSuchStep')
    page = api.report_data(config).read_text()
    assert page.count('NoSuchStep') >= 2
    assert 'cell' in page  # the classes are shown nevertheless
    config.default_scope = 'no_such_host'
    assert 'no_such_host' in api.report_data(config).read_text()


def test_missing_files_are_reasons_on_the_page(projects, tmp_path: Path):
    folder = shutil.copytree(projects['semantic'], tmp_path / 'project')
    (folder / 'labels/val.txt').unlink()
    data = read_config(str(folder)).images
    found = content_of(folder)
    assert Path(data).is_dir()
    assert [note for note in found['data'].notes if note.startswith('val')]
    assert found['network'].inputs


def test_random_generators_stay_as_they_are(projects):
    torch.manual_seed(3)
    np.random.seed(3)
    expected = torch.rand(2), np.random.rand(2)
    torch.manual_seed(3)
    np.random.seed(3)
    first = content_of(projects['detection'])['network'].inputs
    assert torch.equal(torch.rand(2), expected[0]) and (np.random.rand(2) == expected[1]).all()
    assert first == content_of(projects['detection'])['network'].inputs


def test_the_command(projects, tmp_path: Path, capsys):
    project = projects['instance']
    assert run('report', ['--data', str(project)]) == 0
    assert str(project / 'data.html') in capsys.readouterr().out
    assert (project / 'data.html').stat().st_size < 1e6
    out = tmp_path / 'page.html'
    assert run('report', ['--data', str(project / 'config.py'), '--out', str(out)]) == 0
    assert out.is_file()
    (tmp_path / 'config.py').write_text(
        "work_dir = 'w'\ntrain_dataloader = dict(dataset=dict(type='A', ann_file='absent.json'))"
    )
    assert run('report', ['--data', str(tmp_path / 'config.py')]) != 0
    for words in ([], [str(project), '--data', str(project)], ['--data', str(tmp_path / 'no.py')]):
        assert run('report', words) != 0
    assert run('report', ['--data', str(project), '--out', str(out)]) != 0  # it exists


@pytest.mark.usefixtures('untried')
def test_new_writes_the_page_and_survives_without_it(tmp_path: Path, capsys, monkeypatch):
    data = class_folders(tmp_path / 'data')
    words = ['--weights', 'none', '--size', '64']
    assert run('new', [str(data), str(tmp_path / 'one'), *words]) == 0
    assert (tmp_path / 'one/data.html').is_file()
    before, _, after = capsys.readouterr().out.partition('data.html')
    assert 'config.py' in before and 'Next' in after

    def fail(*_: object, **content: object) -> None:
        raise ValueError('a planted fault')

    monkeypatch.setattr('jinja2.Template.render', fail)
    assert run('new', [str(data), str(tmp_path / 'two'), *words]) == 0
    assert 'a planted fault' in capsys.readouterr().out
    assert not (tmp_path / 'two/data.html').exists()


def test_skipped_categories_are_remarked_as_by_check(tmp_path: Path, projects):
    folder = shutil.copytree(projects['detection'], tmp_path / 'project')
    file = folder / 'labels/train.json'
    labels = json.loads(file.read_text())
    labels['categories'].append(dict(id=9, name='speck'))
    labels['annotations'][0]['category_id'] = 9
    file.write_text(json.dumps(labels))
    (warned,) = [
        finding
        for finding in api.check(read_config(str(folder)), thorough=False)
        if finding.severity is Severity.WARNING and 'speck' in finding.what
    ]
    remarks = [text for text, place in content_of(folder)['remarks'] if place == 'classes']
    assert any(str(warned) in text for text in remarks)
    assert not any('speck' in text for text, _ in content_of(projects['detection'])['remarks'])


def test_many_images_make_a_small_page(tmp_path: Path, projects):
    """1,000 images, most of which are links to a few, and five problems for each."""
    folder = shutil.copytree(projects['detection'], tmp_path / 'project')
    config = read_config(str(folder))
    file = folder / 'labels/train.json'
    labels = json.loads(file.read_text())
    image, *_ = labels['images']
    objects = [entry for entry in labels['annotations'] if entry['image_id'] == image['id']]
    source = Path(config.images, image['file_name'])
    images = tmp_path / 'images'
    images.mkdir()
    labels['images'], labels['annotations'] = [], []
    for i in range(1000):
        (images / f'{i}.png').symlink_to(source)
        labels['images'].append(image | dict(id=i, file_name=f'{i}.png'))
        for entry in objects:
            number = len(labels['annotations'])
            labels['annotations'].append(entry | dict(id=number, image_id=i))
    file.write_text(json.dumps(labels))
    boxes = [(f'{i}.png', k) for i in range(1000) for k in range(5)]
    lines = [f'x.json: objects: cell [{k}, 2, 3, 4] in {name} (96x64)\n' for name, k in boxes]
    (folder / 'problems.txt').write_text(''.join(lines))
    text = (folder / 'config.py').read_text()
    (folder / 'config.py').write_text(text.replace(str(config.images), str(images)))
    assert api.report_data(read_config(str(folder))).stat().st_size < 1e6


@pytest.fixture(scope='module')
def browser() -> Iterator:
    with chromium() as browser:
        yield browser


@needs_chromium
@pytest.mark.parametrize(
    ('task', 'scheme'), [('detection', 'dark'), *((task, 'light') for task in MAKERS)]
)
def test_in_a_browser(task: str, scheme: str, browser, projects):
    (projects[task] / 'problems.txt').write_text(
        'a.json: objects listed twice: <b>cell</b> [60, 20, 16, 20] in im1.png (96x64)\n'
    )
    file = api.report_data(read_config(str(projects[task])))
    with quiet_page(browser, file, viewport=PHONE, color_scheme=scheme) as page:
        page.locator('#open-all').click()
        assert width(page) <= PHONE['width']
    with quiet_page(browser, file, color_scheme=scheme) as page:
        assert '<b>cell</b>' in page.locator('#problems').inner_text()
        # Every picture has a text, and opens with the keyboard.
        assert page.locator('.card svg[role=img]:not([aria-label])').count() == 0
        first = page.locator('#inputs .panel').first
        first.focus()
        page.keyboard.press('Enter')
        assert page.locator('dialog[open] svg').count() >= 1
        page.keyboard.press('Escape')
        assert page.locator('dialog[open]').count() == 0
        heading = page.locator('#classes th').first
        heading.get_by_role('button').press('Enter')
        assert heading.get_attribute('aria-sort') == 'ascending'
        assert page.locator('.remarks a').count() >= 1
