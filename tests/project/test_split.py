"""Splits are kept, or derived only from the content of images, with copies on one side."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data import made
from data.formats.coco import coco
from data.formats.voc import voc_beside
from data.formats.yolo import darknet
from PIL import Image, ImageOps

from ptnt_mm.api import create_project
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.project.split import split_off


def photograph(seed: int, size: tuple[int, int] = (96, 64)) -> Image.Image:
    """A picture that is like no other one."""
    pixels = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)


def save(image: Image.Image, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)


def boxes(
    root: Path,
    names: Sequence[str],
    images: Sequence[Image.Image] | None = None,
    classes: Callable[[int], Sequence[int]] = lambda i: [0],
) -> Path:
    """YOLO's labels with a box of each class of an image."""
    for i, name in enumerate(names):
        save(images[i] if images else photograph(i), root / 'images' / name)
        label = (root / 'labels' / name).with_suffix('.txt')
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(''.join(f'{c} 0.5 0.5 0.2 0.2\n' for c in classes(i)))
    (root / 'data.yaml').write_text(f'names: {[f"c{i}" for i in range(12)]}\n')
    return root


def split(root: Path, share: float | None = None) -> tuple[dict[str, list[Path]], list[str]]:
    """The images of each split, and the notes about them."""
    labels = made.read(root)
    found = split_off(labels, share)
    return {part: [image.path for image in images] for part, images in found.items()}, labels.notes


def splits(root: Path) -> dict[str, set[str]]:
    return {part: {path.name for path in paths} for part, paths in split(root)[0].items()}


@pytest.mark.parametrize(('count', 'share', 'wanted'), [
    (50, None, 10), (36, None, 7), (6, None, 1), (2, None, 1), (50, 0.1, 5), (20, 0.5, 10),
    (8, 0.99, 7),
])  # fmt: skip
def test_a_fifth_is_a_fifth(tmp_path: Path, count: int, share: float | None, wanted: int):
    found, _ = split(boxes(tmp_path, [f'{i}.jpg' for i in range(count)]), share)
    assert len(found['val']) == wanted and len(found['train']) == count - wanted


def test_copies_that_leave_nothing_to_train_on_are_named(tmp_path: Path):
    """Images without objects; three of four are copies."""
    failed = 0
    for seed in range(0, 60, 4):
        images = [photograph(seed), *[photograph(seed + 1)] * 3]
        labels = made.read(boxes(tmp_path / str(seed), [f'{i}.png' for i in range(4)], images))
        labels.images[:] = [replace(image, objects=[]) for image in labels.images]
        try:
            assert set(split_off(labels, 0.75)) == {'train', 'val'}
        except UserError as error:
            failed += 1
            assert 'no image is left for train: add images' in str(error)
    assert 0 < failed < 15


@pytest.mark.parametrize('share', [0, 1, 20, -0.1, 1.5, float('nan'), '0.2', True])
def test_a_share_is_between_0_and_1(tmp_path: Path, share: object):
    with pytest.raises(UserError, match=f'`val_share={share!r}`: expected a number between 0'):
        create_project(darknet(tmp_path / 'data'), tmp_path / 'project', val_share=share)


def test_the_share_is_an_option(tmp_path: Path, untried):
    data, project = boxes(tmp_path / 'data', [f'{i}.jpg' for i in range(10)]), tmp_path / 'project'
    assert run('new', [str(data), str(project), '--val-share', '0.5']) == 0
    assert len(json.loads((project / 'labels' / 'val.json').read_text())['images']) == 5
    assert '--val-share 0.5`' in (project / 'config.py').read_text().splitlines()[0]


def test_more_images_move_few_others_and_copies_stay_together(tmp_path: Path):
    for i in range(100):
        save(photograph(i), tmp_path / made.NAMES[i % 2] / f'{i * 7919 % 1000}.png')
    before = splits(tmp_path)
    for i in range(100):
        folder, name = tmp_path / made.NAMES[i % 2], f'{i * 7919 % 1000}.png'
        shutil.copy(folder / name, folder / f'again {name}')
    for i in range(30):
        save(photograph(1000 + i), tmp_path / made.NAMES[i % 2] / f'{2000 + i * 7919 % 1000}.png')
    after = splits(tmp_path)
    moved = [name for part, names in before.items() for name in names - after[part]]
    assert len(moved) <= 5
    for part, names in before.items():
        for name in names - set(moved):
            assert f'again {name}' in after[part]


def test_the_split_depends_on_the_content_only(tmp_path: Path):
    boxes(tmp_path / 'a', [f'{i}.jpg' for i in range(30)])
    boxes(tmp_path / 'b', [f'{i * 7919 % 1000}.jpg' for i in range(30)])
    a, b = ({path.read_bytes() for path in split(tmp_path / name)[0]['val']} for name in ('a', 'b'))
    assert a == b


COPIES = {
    'Roboflow': [f'p{i}_jpg.rf.{i}{k}0abcdef.jpg' for i in range(12) for k in range(3)],
    'Roboflow, few photographs': [
        f'p{i}_png.rf.{i}{k}0abcdef.jpg' for i in range(4) for k in range(10)
    ],
    'augmented': [f'p{i}{e}.jpg' for i in range(15) for e in ('', '_aug1', '_flip', '_rot90')],
    'augmented, in other words': [
        f'p{i}_{e}.jpg' for i in range(15) for e in ('original', 'sepia', 'warped')
    ],
    'with an ending': [f'p{i}{e}.jpg' for i in range(15) for e in ('', '-b', ' (1)')],
    'tiles': [f'p{i}_{y}_{x}.png' for i in range(10) for y in range(2) for x in range(3)],
    'tiles with places': [
        f'p{i}_x{x}_y{y}.png' for i in range(10) for x in (0, 512) for y in (0, 512)
    ],
    'tiles with numbers': [f'p{i}_tile_{k}.png' for i in range(10) for k in range(4)],
    'frames': [f'p{i}_{k:04}.jpg' for i in range(6) for k in range(10)],
    'frames in folders': [f'p{i}/frame_{k:04}.jpg' for i in range(6) for k in range(10)],
    'every fifth frame': [f'p{i}_frame{5 * k}.jpg' for i in range(6) for k in range(10)],
    'frames from Roboflow': [
        f'p{i}_mp4-{k}_jpg.rf.{i}{k}0abcdef.jpg' for i in range(6) for k in range(10)
    ],
}


def original(path: Path) -> str:
    name = '/'.join(path.parts[-2:]) if path.parent.name != 'images' else path.name
    return name.split('/')[0].split('_')[0].split('.')[0].split('-')[0].split(' ')[0]


@pytest.mark.parametrize('kind', COPIES)
def test_copies_are_on_one_side(tmp_path: Path, kind: str):
    """By their names: here, no two pictures are alike."""
    names = COPIES[kind]
    found, _ = split(boxes(tmp_path, names))
    sides = [{original(path) for path in found[part]} for part in ('train', 'val')]
    assert all(sides) and not sides[0] & sides[1]
    assert 0.1 <= len(found['val']) / len(names) <= 0.3


def test_resized_and_mirrored_copies_of_any_name_are_on_one_side(tmp_path: Path):
    names = [f'{i * 7919 % 1000}.{suffix}' for i in range(20) for suffix in ('jpg', 'png')]
    names = [f'small{name}' if name.endswith('png') else name for name in names]
    pictures = [photograph(k // 2, ((96, 64), (70, 46))[k % 2]) for k in range(40)]
    pictures[3::4] = map(ImageOps.mirror, pictures[3::4])
    found, notes = split(boxes(tmp_path, names, pictures))
    sides = [{path.stem.removeprefix('small') for path in found[part]} for part in ('train', 'val')]
    assert len(found['val']) == 8 and not sides[0] & sides[1]
    assert any('40 images in 20 groups' in note for note in notes)


def blank(i: int) -> Image.Image:
    noise = np.random.default_rng(i).normal(200, 2, (64, 96, 3))
    return Image.fromarray(noise.astype(np.uint8))


def form(i: int) -> Image.Image:
    """A form: all are alike, and each is filled in differently."""
    pixels = np.full((64, 96), 250, np.uint8)
    pixels[4:8, 8:80] = pixels[::12, 8:80] = 20
    pixels[10:60, 8 + i : 14 + i] = 90
    return Image.fromarray(pixels).convert('RGB')


@pytest.mark.parametrize(
    ('names', 'draw'),
    [
        ([f'img_{i:04}.jpg' for i in range(50)], photograph),
        ([f'slide{i}.png' for i in range(50)], blank),
        ([f'form{i}.png' for i in range(50)], form),
        ([f'{2007 + i % 5}_{i * 7919 % 9000:06}.jpg' for i in range(50)], photograph),
        ([f'IMG_{20240101 + i % 3}_{i * 7919 % 100000:06}.jpg' for i in range(50)], photograph),
    ],
    ids=['one prefix', 'blank slides', 'forms', 'years', 'days'],
)
def test_no_group_is_most_of_the_set(tmp_path: Path, names: list[str], draw: Callable):
    found, _ = split(boxes(tmp_path, names, [draw(i) for i in range(len(names))]))
    assert 8 <= len(found['val']) <= 12


def test_one_video_is_cut_into_blocks(tmp_path: Path):
    """Of a video of a moving camera, frames on both sides of a cut are alike, and no others."""
    scene = np.asarray(photograph(0, (700, 64)))
    frames = [Image.fromarray(scene[:, 6 * i : 6 * i + 96]) for i in range(100)]
    found, notes = split(boxes(tmp_path, [f'f{i:03}.jpg' for i in range(100)], frames))
    numbers = sorted(int(path.stem[1:]) for path in found['val'])
    cuts = sum(b - a > 1 for a, b in zip(numbers, numbers[1:], strict=False))
    assert 15 <= len(numbers) <= 25 and cuts <= 4
    assert any('blocks' in note for note in notes)


@pytest.mark.parametrize('heads', [('rose', 'tulip'), ('class1', 'class2', 'class3')])
def test_names_that_begin_with_the_class_are_not_videos(tmp_path: Path, heads: Sequence[str]):
    for k, head in enumerate(heads):
        for i in range(20):
            save(photograph(100 * k + i), tmp_path / head / f'{head}_{i:03}.jpg')
    found, _ = split(tmp_path)
    assert Counter(path.parent.name for path in found['val']) == dict.fromkeys(heads, 4)


def test_names_may_be_numbers_of_any_length(tmp_path: Path):
    names = [f'scan{c}_{number}.jpg' for c in range(2) for number in (3, 10**19)]
    found, _ = split(boxes(tmp_path, names))
    assert len({path.name[4] for path in found['val']}) == 1


def test_rare_classes_are_on_both_sides(tmp_path: Path):
    rare = {3: [1], 40: [0, 1], 7: [2], 8: [2, 0], 20: [3]}
    names = [f'{i}.jpg' for i in range(60)]
    found, notes = split(boxes(tmp_path, names, classes=lambda i: rare.get(i, [0])))
    sides = [
        {c for path in found[part] for c in rare.get(int(path.stem), [0])}
        for part in ('train', 'val')
    ]
    assert sides == [{0, 1, 2, 3}, {0, 1, 2}] and len(found['val']) == 12
    assert any(note.endswith('c1 1/1, c2 1/1, c3 1/0') for note in notes)
    assert '1 of 4 classes missing in val: c3' in notes


def test_a_class_of_two_videos_is_on_both_sides(tmp_path: Path):
    names = [f'clip{c}_{k:03}.jpg' for c in range(4) for k in range(10)]
    found, _ = split(boxes(tmp_path, names, classes=lambda i: [0, 1] if i < 20 else [0]))
    assert len(found['val']) == 10
    assert {path.name[4] for path in found['val']} < {'0', '1'}


def test_classes_of_images_are_in_proportion(tmp_path: Path):
    for k, (name, count) in enumerate(dict(a=100, b=50, c=4).items()):
        for i in range(count):
            save(photograph(1000 * k + i), tmp_path / name / f'{i * 7919 % 1000}.jpg')
    found, notes = split(tmp_path)
    assert Counter(path.parent.name for path in found['val']) == dict(a=20, b=10, c=1)
    assert 'images in train/val: a 80/20, b 40/10, c 3/1' in notes


def test_copies_of_a_class_without_others_are_on_both_sides_and_this_is_said(tmp_path: Path):
    for name in ('cup', 'pan'):
        for i in range(6):
            save(photograph(i), tmp_path / name / f'{name}_jpg.rf.{i}00abcdef.jpg')
    found, notes = split(tmp_path)
    assert {path.parent.name for path in found['val']} == {'cup', 'pan'}
    assert any('copies are on both sides' in note for note in notes)


def test_a_test_split_is_left_alone(tmp_path: Path):
    voc_beside(tmp_path)
    (tmp_path / 'valid').rename(tmp_path / 'test')
    found = splits(tmp_path)
    assert found['test'] == {'im4.png', 'im5.png'}
    assert found['train'] and found['val']


def test_copies_across_a_given_split_are_noted(tmp_path: Path):
    for i in range(8):
        save(photograph(i), tmp_path / 'train' / 'ab'[i % 2] / f'{i}.jpg')
    for i in range(4):
        save(photograph(100 + i), tmp_path / 'val' / 'ab'[i % 2] / f'{i}.jpg')
    _, notes = split(tmp_path)
    assert not any('warning' in note for note in notes)
    save(photograph(1, (60, 40)), tmp_path / 'val' / 'b' / 'smaller.png')
    shutil.copy(tmp_path / 'train' / 'a' / '0.jpg', tmp_path / 'val' / 'a' / 'same.jpg')
    save(photograph(50), tmp_path / 'train' / 'a' / 'x_jpg.rf.1a.jpg')
    save(photograph(60), tmp_path / 'train' / 'a' / 'y.jpg')
    save(photograph(60).rotate(180), tmp_path / 'val' / 'a' / 'y_rot180.jpg')
    turned = photograph(50).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    save(turned, tmp_path / 'val' / 'a' / 'x_jpg.rf.2b.jpg')
    found, notes = split(tmp_path, 0.5)
    assert len(found['val']) == 8  # as given
    assert any('warning: 4 of 8 images in val are copies' in note for note in notes)
    assert any('val_share 0.5 is not used' in note for note in notes)


def test_pictures_of_a_fixed_camera_are_not_copies(tmp_path: Path):
    """Only a small object moves; a copy differs in all of its pixels, by a little."""
    scene = photograph(0, (320, 240))
    pictures = []
    for i in range(12):
        picture = scene.copy()
        place = (20 * i, 15 * i)
        picture.paste((250, 20, 20), (*place, place[0] + 20, place[1] + 16))
        pictures.append(picture)
    names = [f'{"train" if i < 8 else "val"}/{i}.png' for i in range(12)]
    _, notes = split(boxes(tmp_path / 'camera', names, pictures))
    assert not any('copies' in note for note in notes)
    pictures[8] = pictures[0].resize((200, 150))
    _, notes = split(boxes(tmp_path / 'copy', names, pictures))
    assert any('1 of 4 images in val' in note and '8.png (of 0.png)' in note for note in notes)


def test_numbers_in_brackets_are_those_of_pictures(tmp_path: Path):
    """Windows numbers renamed files like this, and copies, too, next to their original."""
    names = [f'drawing ({i}).jpg' for i in range(1, 31)]
    found = splits(boxes(tmp_path / 'drawn', names))
    assert len(found['val']) == 6
    names = [f'a{i}{end}.jpg' for i in range(10) for end in ('', ' (1)', '(2)')]
    found = splits(boxes(tmp_path / 'copied', names))
    assert not {name[:2] for name in found['val']} & {name[:2] for name in found['train']}


def test_classes_missing_in_a_given_split_are_noted(tmp_path: Path):
    for i in range(8):
        save(photograph(i), tmp_path / 'train' / 'abc'[i % 3] / f'{i}.jpg')
    for i in range(4):
        save(photograph(100 + i), tmp_path / 'val' / 'ab'[i % 2] / f'{i}.jpg')
    _, notes = split(tmp_path)
    assert 'warning: 1 of 3 classes missing in val: c' in notes


def test_one_image_cannot_be_split(tmp_path: Path):
    coco(tmp_path)
    for file in list((tmp_path / 'images').iterdir())[1:]:
        file.unlink()
    with pytest.raises(UserError, match='only image'):
        splits(tmp_path)


def test_equal_files_of_two_classes_are_said(tmp_path: Path):
    for i in range(16):
        save(photograph(i // 2 and i), tmp_path / ('cat', 'dog')[i % 2] / f'{i // 2}.png')
    _, notes = split(tmp_path)
    assert any('dog/0.png equals cat/0.png' in note for note in notes)
