"""Images and masks are paired by what their names have in common."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from data.made import read
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.reading.mask_pairs import find_pairs, has_folder_of_masks, option_for
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree

from . import drawn

COUNT = 6


def draw_pairs(root: Path, image: str, mask: str, numbers: range = range(COUNT)) -> dict[str, str]:
    """Draw pairs with names of two patterns; returns them."""
    pairs = {}
    for i in numbers:
        pairs[image.format(i)] = mask.format(i)
        drawn.put(drawn.photograph(i), root / image.format(i))
        drawn.put(drawn.black_and_white(i), root / mask.format(i))
    return pairs


def draw_photographs(root: Path, name: str, count: int = 4) -> None:
    for i in range(count):
        drawn.put(drawn.photograph(50 + i), root / name.format(i))


def found_in(root: Path) -> dict[str, str]:
    return {
        str(image.relative_to(root)): str(mask.relative_to(root))
        for image, mask in find_pairs(Tree(root)).masks.items()
    }


@pytest.mark.parametrize(
    ('image', 'mask'),
    [
        ('cells{}.png', 'cells{}_cp_masks.png'),
        ('images/00{}_image.png', 'masks/00{}_mask.png'),
        ('{}_sat.jpg', '{}_mask.png'),
        ('x/{}_sat.jpg', 'x/{}_gt.png'),
        ('{}.jpg', '{}_label.png'),
        ('2_Ortho_RGB/top_{}_RGB.tif', '5_Labels/top_{}_label.tif'),
        ('1. Original/D_{}.jpg', '2. All Truths/1. Spots/D_{}_SP.png'),
        ('drone_semantic/original/{}.jpg', 'drone_semantic/label_semantic/{}.png'),
        ('vis/{}.jpg', 'label/{}.png'),
        ('ISIC_000{}.jpg', 'ISIC_000{}_segmentation.png'),
        ('img_000{}.jpg', 'mask_000{}.png'),
        ('image ({}).png', 'label ({}).png'),
        ('benign/benign ({}).png', 'benign/benign ({})_mask.png'),
        ('stare-images/im000{}.ppm', 'labels-ah/im000{}.ah.ppm'),
        ('raw/{}.pgm', 'annotated/{}.pgm'),
        ('cell_0{}_ch00.tif', 'cell_0{}_roi.tif'),
        ('images/{}.png', '1st_manual/{}_manual1.gif'),
        ('sample{}Image.png', 'sample{}Mask.png'),
        ('p{}.jpg', 'p{}.png'),
        ('images/{}.jpg', 'areas/{}.png'),
        ('images/train2017/0{}.jpg', 'stuffthingmaps_trainval2017/train2017/0{}.png'),
        ('img/p{}.jpg', 'gt/p{}.jpg.png'),
        ('im{}/image.png', 'im{}/mask.png'),
        ('a{}f/images/a{}f.png', 'a{}f/masks/a{}f.png'),
        ('segmentation/images/{}.png', 'segmentation/masks/{}.png'),
        ('images/site{0}/x{0}.png', 'masks/x{}.png'),
        ('Images/IMG_{}.JPG', 'Masks/img_{}_Mask.PNG'),
        ('train/7c_0{}.jpg', 'train_masks/7c_0{}_mask.gif'),
        ('PNGImages/FudanPed0{}.png', 'PedMasks/FudanPed0{}_mask.png'),
        ('imagesTr/case_0{}_0000.png', 'labelsTr/case_0{}.png'),
        ('train/0006R0_f{}.png', 'trainannot/0006R0_f{}.png'),
        ('training/images/{}.jpg', 'training/v1.2/labels/{}.png'),
        ('v1.2/images/{}.jpg', 'v1.2/masks/{}.png'),
        ('images_v1.0/{}.jpg', 'masks_v2.1/{}.png'),
        ('images_v1/{}.jpg', 'masks_V2/{}.png'),
        ('data 2.0/img/{}.jpg', 'release-1.2.3/labels/{}.png'),
        (
            'leftImg8bit/train/ulm/ulm_0{}_19_leftImg8bit.png',
            'gtFine/train/ulm/ulm_0{}_19_gtFine_labelIds.png',
        ),
    ],
)
def test_names_that_differ_in_the_same_words_are_pairs(tmp_path: Path, image: str, mask: str):
    pairs = draw_pairs(tmp_path, image.replace('{}', '{0}'), mask.replace('{}', '{0}'))
    labels = read(tmp_path)
    assert {
        str(entry.path.relative_to(tmp_path)): str(entry.mask.relative_to(tmp_path))
        for entry in labels.images
    } == pairs
    assert (labels.problems, labels.notes) == ([], [])


@pytest.mark.parametrize(
    ('image', 'classes', 'objects'),
    [
        ('images/{}.jpg', 'labels/{}.png', 'instances/{}.png'),
        ('val/images/{}.jpg', 'val/v1.2/labels/{}.png', 'val/v1.2/instances/{}.png'),
        ('rgb/{}.jpg', 'gt/semantic/{}.png', 'gt/instance/{}.png'),
        ('img/{}.jpg', 'mask/{}.png', 'panoptic/{}.png'),
        ('all/{}_leftImg8bit.png', 'all/{}_labelIds.png', 'all/{}_instanceIds.png'),
        ('x/{}.jpg', 'annotations/{}.png', 'inst/{}.png'),
        ('ds/img/{}.png', 'ds/masks_machine/{}.png', 'ds/masks_human/{}.png'),
    ],
)
@pytest.mark.parametrize('present', [range(2, COUNT), range(2)], ids=['most', 'few'])
def test_masks_whose_images_are_missing_are_no_images(
    tmp_path: Path, image: str, classes: str, objects: str, present: range
):
    for i in range(COUNT):
        drawn.put(Image.fromarray(drawn.indices(i, 4) % 3), tmp_path / classes.format(i))
        drawn.put(Image.fromarray(drawn.indices(i, 4)), tmp_path / objects.format(i))
        if i in present:
            drawn.put(drawn.photograph(i, 4), tmp_path / image.format(i))
    labels = read(tmp_path)
    used = {
        str(e.path.relative_to(tmp_path)): str(e.mask.relative_to(tmp_path)) for e in labels.images
    }
    assert used == {image.format(i): classes.format(i) for i in present}
    kinds = {problem.kind for problem in labels.problems}
    assert kinds == {'masks without an image'}
    assert len(labels.problems) == 2 * (COUNT - len(present))


def test_masks_without_any_image_are_counted(tmp_path: Path):
    for i in range(COUNT):
        for folder in ('instances', 'labels'):
            drawn.put(Image.fromarray(drawn.indices(i)), tmp_path / folder / f'{i}.png')
    with pytest.raises(UserError, match=f'without an image: {2 * COUNT}, such as instances/0'):
        recognise(Tree(tmp_path))


@pytest.mark.parametrize('other', ['test/{}.png', 'testing/images/{}.png', 'unseen/{}.png'])
@pytest.mark.parametrize('mask', ['train/label/{}.png', 'train/masks/{}_mask.png'])
def test_masks_of_images_in_training_are_not_given_to_others(tmp_path: Path, mask: str, other: str):
    pairs = draw_pairs(tmp_path, 'train/image/{}.png', mask)
    draw_photographs(tmp_path, other, COUNT)
    assert found_in(tmp_path) == pairs
    assert len(read(tmp_path).problems) == COUNT


def test_each_data_set_of_a_clone_keeps_its_masks(tmp_path: Path):
    wanted = draw_pairs(tmp_path, 'EC/train/image/all/{}.bmp', 'EC/train/label/all/{}.bmp')
    wanted |= draw_pairs(tmp_path, 'neuronal/images/s{}.png', 'neuronal/masks/s{}.png')
    wanted |= draw_pairs(tmp_path, 'patch/even/images/{}.png', 'patch/even/labels/{}.png')
    assert found_in(tmp_path) == wanted


def test_a_mask_without_its_image_is_not_given_to_another_split(tmp_path: Path):
    pairs = draw_pairs(tmp_path, 'train/image/{}.png', 'train/label/{}.png')
    (tmp_path / 'train/image/3.png').unlink()
    draw_photographs(tmp_path, 'val/{}.png', COUNT)
    pairs.pop('train/image/3.png')
    assert found_in(tmp_path) == pairs
    assert 'masks without an image' in {p.kind for p in read(tmp_path).problems}


@pytest.mark.parametrize('image', ['{}_images/{{}}.jpg', 'Task1_{}_Input/{{}}.jpg'])
@pytest.mark.parametrize('other', ['val', 'train'])
def test_splits_are_words_of_folders_if_there_are_several(tmp_path: Path, image: str, other: str):
    for i, split in enumerate(('train', other)):
        mask = f'{split}_masks/{{}}.png'
        draw_pairs(tmp_path, image.format(split), mask, range(10 * i, 10 * i + COUNT))
    splits = [entry.split for entry in read(tmp_path).images]
    wanted = ['train', 'val'] if other == 'val' else [None, None]
    assert sorted(splits, key=str) == sorted(COUNT * wanted, key=str)


@pytest.mark.parametrize(
    ('image', 'mask'),
    [
        ('im000{}.png', 'im000{}_ah.png'),
        ('aufnahmen/teil_{}_foto.jpg', 'zeichnungen/teil_{}_flaeche.png'),
        ('my photos/{}.png', 'my outlines/{}.png'),
        ('site{}/a.jpg', 'drawn/site{}/a.png'),
        ('{}/x{}x.jpg', 'drawn/{}/{}.png'),
        ('a{}/b/x{}.jpg', 'drawn/{}.png'),
    ],
)
def test_other_names_are_given(tmp_path: Path, image: str, mask: str):
    pairs = draw_pairs(tmp_path, image.replace('{}', '{0}'), mask.replace('{}', '{0}'))
    tree = Tree(tmp_path, f'{image} {mask}')
    labels = read_labels(tree, recognise(tree))
    assert {str(tree.relative(e.path)): str(tree.relative(e.mask)) for e in labels.images} == pairs


def test_given_names_leave_the_rest_out(tmp_path: Path):
    draw_pairs(tmp_path, 'a/{}.png', 'masks/{}.png')
    draw_pairs(tmp_path, 'b/{}.png', 'lungs/left/{}.png')
    (tmp_path / 'b/0.png').unlink()
    tree = Tree(tmp_path, 'b/{}.png lungs/*/{}.png')
    labels = read_labels(tree, recognise(tree))
    assert {image.path.parent.name for image in labels.images} == {'b'}
    kinds = Counter(problem.kind for problem in labels.problems)
    assert kinds == {'masks without an image': 1, 'images that no label refers to': 2 * COUNT}


@pytest.mark.parametrize('given', ['a/{}.png', 'a/{}.png masks/x{}.png', 'a/1.png masks/1.png'])
def test_names_that_fit_nothing_are_an_error(tmp_path: Path, given: str):
    draw_pairs(tmp_path, 'a/{}.png', 'masks/{}.png')
    with pytest.raises(UserError, match=f'`pairs=.{re.escape(given)}.` fits no image and mask'):
        recognise(Tree(tmp_path, given))


def draw_two_folders(root: Path, image: str, mask: str) -> dict[str, str]:
    """Draw pairs with equal names in two folders."""
    return {
        key: value
        for folder in ('train', 'val')
        for key, value in draw_pairs(root, f'{folder}/{image}', f'{folder}/{mask}').items()
    }


def test_given_names_that_fit_two_files_are_an_error(tmp_path: Path):
    pairs = draw_two_folders(tmp_path, 'images/{}.png', 'masks/{}_m.png')
    with pytest.raises(UserError, match='train/images/0.png and val/images/0.png: use {} for the'):
        find_pairs(Tree(tmp_path, '*/images/{}.png */masks/{}_m.png'))
    tree = Tree(tmp_path, '{}/images/{}.png {}/masks/{}_m.png')
    found = {
        str(tree.relative(image)): str(tree.relative(mask))
        for image, mask in find_pairs(tree).masks.items()
    }
    assert found == pairs


@pytest.mark.parametrize('given', ['{}.png {}.png', 'x/{}.png x/{}_m.png'])
def test_a_file_is_not_both_an_image_and_a_mask(tmp_path: Path, given: str):
    for name in ('0', '0_m', '0_m_m'):
        drawn.put(drawn.photograph(0), tmp_path / 'x' / f'{name}.png')
    with pytest.raises(UserError, match=r'fits x/0\w*.png both as an image and as a mask'):
        find_pairs(Tree(tmp_path, given))


def test_images_that_fit_the_pattern_of_masks_are_no_masks(tmp_path: Path):
    draw_pairs(tmp_path, 'x/img{}.png', 'x/{}.png')
    pairs = find_pairs(Tree(tmp_path, 'x/img{}.png x/{}.png'))
    assert (len(pairs.masks), len(pairs.aside), pairs.unused) == (COUNT, COUNT, [])


@pytest.mark.parametrize(
    ('image', 'mask', 'given'),
    [
        ('fotos/teil_{}_f.jpg', 'flaechen/teil_{}_z.png', 'fotos/{}_f.jpg flaechen/{}_z.png'),
        ('image{}.png', 'im{}.png', 'image{}.png im{}.png'),
        ('Big/IMG_{}.JPG', 'Out/img_{}_o.PNG', 'Big/IMG_{}.JPG Out/img_{}_o.PNG'),
        ('fotos/{0}/x{0}.jpg', 'drawn/x{0}.png', None),
        ('fotos/a{}.jpg', 'drawn/b_{}_x.png', 'fotos/a{}.jpg drawn/b_{}_x.png'),
    ],
)
def test_suggested_names_are_those_of_all_pairs(
    tmp_path: Path, image: str, mask: str, given: str | None
):
    pairs = draw_pairs(tmp_path, image, mask)
    tree = Tree(tmp_path)
    first, last = tree.root / image.format(0), tree.root / mask.format(0)
    option = option_for(tree, first, last, COUNT)
    assert option == (f'`pairs={given!r}`' if given else '`pairs`')
    if given:
        found = find_pairs(Tree(tmp_path, given)).masks
        assert {str(tree.relative(i)): str(tree.relative(m)) for i, m in found.items()} == pairs
    assert option_for(tree, first, last, COUNT + 1) == '`pairs`'


@pytest.mark.parametrize('image', ['fotos/{}.jpg', 'fotos/p_{}.jpg'])
def test_suggested_names_fit_each_split(tmp_path: Path, image: str):
    """The masks of objects have names that only the option takes."""
    pairs = draw_two_folders(tmp_path, image, 'zeichnungen/p_{}_z.png')
    tree = Tree(tmp_path)
    (first, mask), *_ = pairs.items()
    option = option_for(tree, tree.root / first, tree.root / mask, len(pairs))
    given = option.removeprefix('`pairs=').strip("`'")
    found = find_pairs(Tree(tmp_path, given)).masks
    assert {str(tree.relative(i)): str(tree.relative(m)) for i, m in found.items()} == pairs


def test_given_names_are_for_masks(tmp_path: Path):
    draw_pairs(tmp_path, 'a/{}.png', 'masks/{}.png')
    with pytest.raises(UserError, match='numbered-masks and class-masks, and not for `format=coco'):
        recognise(Tree(tmp_path, 'a/{}.png masks/{}.png'), 'coco')


def test_names_that_fit_two_images_are_an_error_with_the_option(tmp_path: Path):
    draw_pairs(tmp_path, 'a/{}.png', 'masks/{}.png')
    draw_photographs(tmp_path, 'b/{}.png', COUNT)
    with pytest.raises(UserError, match=r"`pairs='a/\{\}.png masks/\{\}.png'`"):
        read(tmp_path)


def test_classes_that_may_be_masks_are_said(tmp_path: Path):
    draw_pairs(tmp_path, 'fotos/teil_{}_f.jpg', 'zeichnungen/teil_{}_z.png')
    (note,) = read(tmp_path).notes
    assert "`pairs='fotos/{}_f.jpg zeichnungen/{}_z.png'`" in note


def test_a_mask_is_for_one_image(tmp_path: Path):
    pairs = draw_pairs(tmp_path, 'images/{}.jpg', 'masks/{}.png')
    drawn.put(drawn.photograph(0), tmp_path / 'images' / '0.png')
    drawn.put(drawn.photograph(1), tmp_path / 'more' / '1.jpg')
    assert found_in(tmp_path) == pairs
    assert {p.file.name for p in read(tmp_path).problems} == {'0.png', '1.jpg'}


def test_turned_copies_do_not_get_the_masks(tmp_path: Path):
    pairs = draw_pairs(tmp_path, 'images/{}.jpg', 'masks/{}.png')
    for i in range(COUNT):
        turned = drawn.photograph(i).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        drawn.put(turned, tmp_path / 'images_aug' / f'{i}_flip.jpg')
    assert found_in(tmp_path) == pairs


@pytest.mark.parametrize(
    ('mask', 'others'),
    [
        ('g/0{}_gtFine_labelTrainIds.png', ['g/0{}_gtFine_labelIds.png', 'g/0{}_gtFine_color.png']),
        ('g/0{}_gtFine_labelIds.png', ['g/0{}_gtFine_instanceIds.png', 'g/0{}_gtFine_color.png']),
        ('SegmentationClass/0{}.png', ['SegmentationObject/0{}.png']),
        ('masks_machine/0{}.png', ['masks_human_color/0{}.png']),
        ('1st_manual/0{}_manual1.gif', ['mask/0{}_lens_mask.gif']),
        ('gt/0{}_segmentation.png', ['img/0{}_superpixels.png']),
    ],
)
def test_one_of_several_masks_is_used(tmp_path: Path, mask: str, others: list[str]):
    pairs = draw_pairs(tmp_path, 'img/0{}.jpg', mask)
    for i in range(COUNT):
        colours = drawn.COLOURS[drawn.indices(i)]
        segments = np.random.default_rng(i).integers(0, 255, (8, 10, 3), np.uint8)
        segments = Image.fromarray(segments.repeat(8, 0).repeat(8, 1))
        for other in others:
            picture = Image.fromarray(colours) if 'color' in other else drawn.black_and_white(i)
            picture = _lens() if 'lens' in other else segments if 'super' in other else picture
            drawn.put(picture, tmp_path / other.format(i))
    assert found_in(tmp_path) == pairs


def test_numbers_of_folders_that_tell_sequences_apart_count(tmp_path: Path):
    pairs = draw_pairs(tmp_path, '01/t00{}.tif', '01_GT/seg00{}.tif')
    pairs |= draw_pairs(tmp_path, '02/t00{}.tif', '02_GT/seg00{}.tif')
    (tmp_path / '01_GT' / 'seg003.tif').unlink()
    pairs.pop('01/t003.tif')
    assert found_in(tmp_path) == pairs


def _lens() -> Image.Image:
    lens = Image.new('1', drawn.SIZE)
    ImageDraw.Draw(lens).ellipse((5, 2, 75, 60), fill=1)
    return lens


@pytest.mark.parametrize('mask', ['train/1st_manual/{}_manual1.gif', 'train/truth/{}.png'])
def test_masks_that_are_all_equal_are_not_given_to_images_without_another(
    tmp_path: Path, mask: str
):
    pairs = draw_pairs(tmp_path, 'train/images/{}.tif', mask)
    draw_photographs(tmp_path, 'test/images/{}.tif', COUNT)
    for split in ('train', 'test'):
        for i in range(COUNT):
            drawn.put(_lens(), tmp_path / split / 'mask' / f'{i}_mask.gif')
    assert found_in(tmp_path) == pairs
    assert len(read(tmp_path).problems) == COUNT


def test_the_image_is_the_picture_without_a_word(tmp_path: Path):
    pairs = draw_pairs(tmp_path, 'a{}.tif', 'a{}_masks.tif')
    for i in range(COUNT):
        noise = np.random.default_rng(i).integers(-9, 9, (*drawn.SIZE[::-1], 3))
        detailed = (np.asarray(drawn.photograph(i)) + noise).clip(0, 255).astype(np.uint8)
        drawn.put(Image.fromarray(detailed), tmp_path / f'a{i}_flows.tif')
    assert found_in(tmp_path) == pairs


@pytest.mark.parametrize(
    'other', [lambda pixels: pixels == 2, lambda pixels: np.roll(pixels > 0, 4, 1)]
)
def test_further_masks_are_said(tmp_path: Path, other: Callable):
    for i in range(COUNT):
        drawn.put(drawn.photograph(i), tmp_path / 'images' / f'{i}.jpg')
        for folder, of in (('masks/a', lambda pixels: pixels == 1), ('masks/b', other)):
            pixels = of(drawn.indices(i)).astype(np.uint8)
            drawn.put(Image.fromarray(pixels), tmp_path / folder / f'{i}.png')
    labels = read(tmp_path)
    assert len(labels.images) == COUNT and not labels.problems
    (note,) = labels.notes
    assert note.startswith(f'{COUNT} images with another mask')
    assert "`pairs='images/{}.jpg masks/b/{}.png'`" in note


def _blended(i: int) -> Image.Image:
    colours = Image.fromarray(drawn.COLOURS[drawn.indices(i)])
    return Image.blend(drawn.photograph(i), colours, 0.5)


def _tinted(i: int) -> Image.Image:
    picture = drawn.photograph(i)
    picture.paste(_blended(i), mask=drawn.black_and_white(i))
    return picture


@pytest.mark.parametrize('paint', [_blended, _tinted])
@pytest.mark.parametrize(
    ('image', 'mask', 'painted'),
    [
        ('JPEGImages/{}.jpg', 'SegmentationClass/{}.png', 'SegmentationClassVisualization/{}.jpg'),
        ('{}.jpg', '{}_label.png', '{}_label_viz.png'),
        ('pictures/{}.jpg', 'masks/{}.png', 'overlays/{}.jpg'),
    ],
)
def test_pictures_with_labels_painted_on_are_not_images(
    tmp_path: Path, paint: Callable, image: str, mask: str, painted: str
):
    pairs = draw_pairs(tmp_path, image, mask)
    for i in range(COUNT):
        drawn.put(paint(i), tmp_path / painted.format(i))
    assert found_in(tmp_path) == pairs
    labels = read(tmp_path)
    assert not labels.problems
    assert [note.split()[0] for note in labels.notes] == [str(COUNT)]


@pytest.mark.parametrize('other', ['label_defect', 'sketches'])
def test_folders_of_classes_are_not_pairs(tmp_path: Path, other: str):
    """The pictures have the same numbers, and those of one class may even be flat."""
    for i in range(COUNT):
        drawn.put(drawn.photograph(i), tmp_path / 'cats' / f'{i}.png')
        picture = drawn.photograph if other == 'label_defect' else drawn.black_and_white
        drawn.put(picture(40 + i), tmp_path / other / f'{i}.png')
    assert recognise(Tree(tmp_path)).format.name == 'folders'
    assert not found_in(tmp_path)


def test_names_of_the_converter_of_labelme_are_read(tmp_path: Path):
    draw_pairs(tmp_path, 'JPEGImages/{}.jpg', 'SegmentationClass/{}.png')
    for file in (tmp_path / 'SegmentationClass').iterdir():
        drawn.put(drawn.with_palette(drawn.indices(int(file.stem))), file)
    (tmp_path / 'class_names.txt').write_text('_background_\ncoin\nring\n')
    assert read(tmp_path).classes == ['_background_', 'coin', 'ring']


def test_folders_above_the_data_do_not_count(tmp_path: Path):
    root = tmp_path / 'masks'
    draw_photographs(root, 'images/{}.jpg')
    assert not has_folder_of_masks(Tree(root))
    draw_photographs(root, 'masks/{}.png')
    assert has_folder_of_masks(Tree(root))
