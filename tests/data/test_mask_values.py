"""Values of masks become the classes that are meant, or a remark says what is unusual."""

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter

from data import made
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.class_masks import IGNORED, read_values, voc_colour, without_palette
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.masks import area
from ptnt_mm.workbench.data.recognise import read_labels, recognise
from ptnt_mm.workbench.data.tree import Tree

from . import drawn

COUNT = 6


def draw(root: Path, mask_of: Callable[[int], Image.Image], count: int = 2) -> Tree:
    for i in range(COUNT):
        drawn.put(drawn.photograph(i, count), root / 'images' / f'{i}.jpg')
        drawn.put(mask_of(i), root / 'masks' / f'{i}.png')
    return Tree(root)


def read(tree: Tree, name: str = 'class-masks') -> Labels:
    return read_labels(tree, recognise(tree, name))


def class_of_each(labels: Labels, i: int) -> np.ndarray:
    """The index of the class at each pixel of mask i; IGNORED without a class."""
    (mask,) = (image.mask for image in labels.images if image.path.stem == str(i))
    index_of = np.vectorize(lambda value: labels.mask_indices.get(value, IGNORED))
    return index_of(read_values(mask))


def shades(values: list[int], i: int) -> Image.Image:
    return Image.fromarray(np.array(values, np.uint8)[drawn.indices(i, len(values) - 1)])


def _compressed(i: int) -> Image.Image:
    stream = io.BytesIO()
    drawn.black_and_white(i).save(stream, 'JPEG', quality=70)
    return Image.open(stream)


def _halved(image: Image.Image) -> Image.Image:
    half = image.resize((drawn.SIZE[0] // 2, drawn.SIZE[1] // 2))
    return half.resize(drawn.SIZE, Image.Resampling.BILINEAR)


@pytest.mark.parametrize(
    'mask_of',
    [
        lambda i: drawn.black_and_white(i).filter(ImageFilter.GaussianBlur(1)),
        lambda i: _halved(drawn.black_and_white(i)),
        lambda i: drawn.black_and_white(i).rotate(3, Image.Resampling.BICUBIC).convert('RGB'),
        lambda i: shades([0, 90, 90], i).filter(ImageFilter.GaussianBlur(1)),
        _compressed,
    ],
    ids=['blurred', 'resampled', 'rotated', 'grey', 'compressed'],
)
def test_black_and_white_with_soft_edges_is_two_classes(tmp_path: Path, mask_of: Callable):
    labels = read(draw(tmp_path, mask_of))
    assert labels.classes == ['background', 'object']
    assert len(labels.notes) == 1 and not labels.problems
    found = class_of_each(labels, 0)
    assert (found != (drawn.indices(0) > 0)).mean() < 0.1
    assert set(np.unique(found)) == {0, 1}


@pytest.mark.parametrize('values', [[0, 128, 255], [0, 60, 120, 180, 240]])
def test_soft_edges_between_several_greys_are_ignored(tmp_path: Path, values: list[int]):
    count = len(values) - 1
    tree = draw(tmp_path, lambda i: shades(values, i).filter(ImageFilter.GaussianBlur(0.7)), count)
    labels = read(tree)
    assert labels.classes == [f'class {value}' for value in values] and not labels.problems
    found, wanted = class_of_each(labels, 0), drawn.indices(0, count)
    assert (found == wanted)[found != IGNORED].mean() > 0.99
    assert (found == IGNORED).mean() < 0.2


def test_soft_edges_between_colours_are_one_remark(tmp_path: Path):
    def mask_of(i: int) -> Image.Image:
        image = Image.fromarray(drawn.COLOURS[drawn.indices(i)])
        return image.filter(ImageFilter.GaussianBlur(0.8))

    tree = draw(tmp_path, mask_of)
    (tmp_path / 'class_dict.csv').write_text('name,r,g,b\nno,0,0,0\na,128,0,0\nb,0,128,0\n')
    labels = read(Tree(tree.root))
    assert labels.classes == ['no', 'a', 'b']
    assert len(labels.notes) == 1 and not labels.problems


def test_thin_objects_are_classes(tmp_path: Path):
    def mask_of(i: int) -> Image.Image:
        pixels = drawn.indices(i)
        pixels[:, 10:12], pixels[20], pixels[:, 60:62], pixels[40] = 5, 7, 9, 11
        return Image.fromarray(pixels)

    labels = read(draw(tmp_path, mask_of))
    assert len(labels.classes) == 12 and not any('numbered-masks' in note for note in labels.notes)


@pytest.mark.parametrize(
    ('values', 'note'),
    [
        (
            [255, 1, 3, 17, 44, 62],
            'the values 1; 3; 17; 44; 62 are read as the classes 0 to 4; 255 is',
        ),
        (
            [255, 0, 2, 90, 91, 180],
            'the values 0; 2; 90; 91; 180 are read as the classes 0 to 4; 255',
        ),
        (
            [255, 0, 1, 5, 30, 31, 60, 61, 90, 100, 120, 150, 180],
            '0; 1; 5; 30; 31; 60; 61; 90; ...; 150; 180 are read as the classes 0 to 11; 255 is',
        ),
        ([0, 64, 128, 191, 255], 'the values 0; 64; 128; 191; 255 are read as the classes 0 to 4'),
        ([200] * 5, 'the value 200 is class 0'),
        ([0, 38, 75, 113, 150], 'the values 0; 38; 75; 113; 150 are read as the classes 0 to 4'),
    ],
)
def test_indices_with_gaps_are_no_shades_of_grey(tmp_path: Path, values: list[int], note: str):
    def mask_of(i: int) -> Image.Image:
        ground, *others = values
        return shades([ground, *(others[(2 * i + k) % len(others)] for k in range(4))], i)

    labels = read(draw(tmp_path, mask_of, 4))
    ignores = values[0] == IGNORED
    assert note in labels.notes[0]
    assert (IGNORED in labels.mask_indices) == (not ignores and IGNORED in values)


@pytest.mark.parametrize('colours', [[(0, 0, 0), (0, 255, 0), (255, 0, 0)], drawn.COLOURS[:4]])
def test_the_table_in_the_error_can_be_pasted(tmp_path: Path, colours):
    colours = np.array(colours, np.uint8)
    tree = draw(tmp_path, lambda i: Image.fromarray(colours[drawn.indices(i, len(colours) - 1)]))
    with pytest.raises(UserError, match=r'class_dict\.csv') as refused:
        read(tree)
    table = str(refused.value).split('\n', 1)[1]
    assert '0,0,0' in table.splitlines()[1]
    (tmp_path / 'class_dict.csv').write_text(table)
    labels = read(Tree(tmp_path))
    assert len(labels.classes) == len(colours) and not labels.notes and not labels.problems
    assert not any((class_of_each(labels, i) == IGNORED).any() for i in range(COUNT))


def shuffled_palette(i: int) -> Image.Image:
    """The same colours with other indices in each file."""
    order = np.random.default_rng(i).permutation(3)
    return drawn.with_palette(
        np.argsort(order)[drawn.indices(i)].astype(np.uint8), drawn.COLOURS[order]
    )


@pytest.mark.parametrize('table', ['', 'name,r,g,b\nno,0,0,0\nb,0,128,0\na,128,0,0\n'])
def test_palettes_with_other_indices_are_read_by_colour(tmp_path: Path, table: str):
    tree = draw(tmp_path, shuffled_palette)
    if table:
        (tmp_path / 'class_dict.csv').write_text(table)
    labels = read(Tree(tree.root))
    names = ['no', 'b', 'a'] if table else ['background', 'class 0,128,0', 'class 128,0,0']
    assert labels.classes == names
    for i in range(COUNT):
        assert (class_of_each(labels, i) == np.array([0, 2, 1])[drawn.indices(i)]).all()


def test_a_colour_that_means_nothing_leaves_the_indices(tmp_path: Path):
    def mask_of(i: int) -> Image.Image:
        colours = np.random.default_rng(i).integers(0, 255, (256, 3))
        return drawn.with_palette(drawn.indices(i), colours)

    labels = read(draw(tmp_path, mask_of))
    assert labels.classes == ['class 0', 'class 1', 'class 2']
    assert (class_of_each(labels, 3) == drawn.indices(3)).all()


def test_black_is_the_background_wherever_it_stands_in_a_palette(tmp_path: Path):
    white_first = np.array([(255, 255, 255), (0, 0, 0)])
    labels = read(
        draw(
            tmp_path,
            lambda i: drawn.with_palette((drawn.indices(i) == 0).astype(np.uint8), white_first),
        )
    )
    assert labels.classes == ['background', 'object']
    assert (class_of_each(labels, 0) == (drawn.indices(0) > 0)).all()


@pytest.mark.parametrize(
    ('file', 'content', 'line'),
    [
        ('class_dict.csv', 'name,r,g,b\na,128,0,0\nb,0,128,0\n', 'NAME,0,0,0'),
        # A digit that is no number.
        ('class_dict.csv', 'name,r,g,b\na,128,0,0\nb,0,128,0\nc,²,0,0\n', 'NAME,0,0,0'),
        ('labelmap.txt', 'a:128,0,0::\nb:0,128,0::\n', 'NAME:0,0,0::'),
        ('label_colors.txt', '128 0 0\ta\n0 128 0\tb\n', 'NAME,0,0,0'),
    ],
)
@pytest.mark.parametrize('has_palette', [False, True])
def test_a_frequent_colour_that_a_table_lacks_is_named_with_its_share(
    tmp_path: Path, file: str, content: str, line: str, has_palette: bool
):
    def mask_of(i: int) -> Image.Image:
        image = drawn.with_palette(drawn.indices(i))
        return image if has_palette else image.convert('RGB')

    tree = draw(tmp_path, mask_of)
    (tmp_path / file).write_text(content)
    labels = read(Tree(tree.root))
    share = np.mean([drawn.indices(i) == 0 for i in range(COUNT)])
    (note,) = labels.notes
    assert note.startswith(f'{share:.0%} ') and file in note and line in note
    assert labels.classes == ['a', 'b']


def test_much_that_is_ignored_is_said(tmp_path: Path):
    (note,) = read(draw(tmp_path, lambda i: shades([255, 0, 1], i))).notes
    assert '255' in note


@pytest.mark.parametrize(
    ('mask_of', 'name'),
    [
        (lambda i: Image.fromarray(drawn.indices(i)), 'class 0'),
        (lambda i: shades([0, 1, 1], i), 'background'),
        (lambda i: drawn.with_palette(drawn.indices(i)), 'background'),
        (lambda i: drawn.with_palette(drawn.indices(i), 255 - drawn.COLOURS), 'class 0'),
    ],
    ids=['indices', 'two values', 'palette of VOC', 'another palette'],
)
def test_0_is_the_background_where_that_is_known(tmp_path: Path, mask_of: Callable, name: str):
    assert read(draw(tmp_path, mask_of)).classes[0] == name


@pytest.mark.parametrize(
    ('values', 'names', 'classes', 'remarks'),
    [
        ([0, 1, 2], 'sky\na\nb\n', ['sky', 'a', 'b'], 0),
        ([0, 1, 2], '__ignore__\nsky\na\nb\n', ['sky', 'a', 'b'], 0),
        ([0, 1, 2], 'a\nb\n', ['background', 'a', 'b'], 1),
        ([0, 100, 200], 'sky\na\nb\n', ['sky', 'a', 'b'], 0),
    ],
)
@pytest.mark.parametrize('file', ['classes.txt', 'codes.txt', 'label_names.txt'])
def test_names_are_those_of_a_list(
    tmp_path: Path, file: str, values: list[int], names: str, classes: list[str], remarks: int
):
    tree = draw(tmp_path, lambda i: shades(values, i))
    (tmp_path / file).write_text(names)
    (tmp_path / 'image_names.txt').write_text('0.jpg\n1.jpg\n2.jpg\n')
    labels = read(Tree(tree.root))
    assert labels.classes == classes and len(labels.notes) == remarks
    assert (class_of_each(labels, 0) == drawn.indices(0)).all()


@pytest.mark.parametrize(
    ('file', 'names', 'classes'),
    [
        ('classes.txt', '2: b\n1: a\n0: sky\n', ['sky', 'a', 'b']),
        ('labels.txt', 'a 1\nb 2\nsky 0\n', ['sky', 'a', 'b']),
        ('table.csv', 'id,name\n0,sky\n2,b\n1,a\n', ['sky', 'a', 'b']),
        *(
            ('classes.txt', names, names.split('\n'))  # a number belongs to the name
            for names in (
                'part 2\npart 1\npart 0',
                'ground\nstage 1\nstage 2',
                'car\n2 wheeler\nbus',
                '7 up\n2 wheeler\n3 x',
                'type 1\nmodel 2\nkind 3',
            )
        ),
    ],
)
def test_a_list_may_have_the_values(tmp_path: Path, file: str, names: str, classes: list[str]):
    tree = draw(tmp_path, lambda i: shades([0, 1, 2], i))
    (tmp_path / file).write_text(names)
    assert read(Tree(tree.root)).classes == classes


@pytest.mark.parametrize(
    ('file', 'head', 'line'),
    [
        ('class.txt', '', '{n} {r} {g} {b} {name}'),
        ('class.txt', 'n r g b name\n', '{n}\t{r}\t{g}\t{b}\t{name}'),
        ('labels.txt', '', '{n}: {name} ({r}, {g}, {b})'),
        ('colours.txt', '', '{name} {r} {g} {b} {n}'),
        ('lut.txt', '# No. Label\n', '{n} {name} {r} {g} {b} 255'),
        ('label.txt', '', '{n} {r} {g} {b} 1 1 1 "{name}"'),
        ('class.csv', '', '{n},{r},{g},{b},{name}'),
        ('class.csv', 'name;r;g;b;id\n', '{name};{r};{g};{b};{n}'),
        ('class.csv', 'Red,Green,Blue,Class Name,ID\n', '{r},{g},{b},{name},{n}'),
    ],
)
@pytest.mark.parametrize('has_colours', [False, True], ids=['values', 'colours'])
def test_a_table_may_have_values_colours_and_names_in_any_order(
    tmp_path: Path, file: str, head: str, line: str, has_colours: bool
):
    def mask_of(i: int) -> Image.Image:
        pixels = drawn.indices(i)
        return Image.fromarray(drawn.COLOURS[pixels] if has_colours else pixels)

    order = [0, 2, 1] if 'ID' in head else [0, 1, 2]  # only a column with a name has any order
    tree = draw(tmp_path, mask_of)
    names = ('no class', 'traffic light', 'car2')
    lines = []
    for n in order:
        r, g, b = drawn.COLOURS[n]
        lines.append(line.format(n=n, r=r, g=g, b=b, name=names[n]))
    (tmp_path / file).write_text(head + '\n'.join(lines))
    labels = read(tree := Tree(tree.root))
    assert labels.classes == [names[n] for n in order]
    assert (class_of_each(labels, 0) == np.argsort(order)[drawn.indices(0)]).all()
    assert not labels.notes and not labels.problems and not recognise(tree).others


@pytest.mark.parametrize('first', [0, 1])
def test_a_table_of_numbered_classes_keeps_their_numbers(tmp_path: Path, first: int):
    tree = draw(tmp_path, lambda i: Image.fromarray(drawn.indices(i) + np.uint8(first)))
    lines = (f'class {n + first} {n} 9 {n}' for n in range(3))
    (tmp_path / 'class.txt').write_text('\n'.join(lines))
    labels = read(Tree(tree.root))
    assert labels.classes == [f'class {n + first}' for n in range(3)] and not labels.notes


def test_a_value_without_a_line_is_named_with_its_share(tmp_path: Path):
    tree = draw(tmp_path, lambda i: Image.fromarray(drawn.indices(i)))
    (tmp_path / 'class.txt').write_text('1 128 0 0 a\n2 0 128 0 b\n')
    labels = read(Tree(tree.root))
    (note,) = labels.notes
    assert labels.classes == ['a', 'b'] and 'the value 0, which class.txt lacks' in note


def test_more_values_than_there_may_be_classes_are_said(tmp_path: Path):
    def mask_of(i: int) -> Image.Image:
        numbers = np.random.default_rng(i).choice(np.arange(1, 250), 8, replace=False)
        return shades([0, *numbers], i)

    tree = draw(tmp_path, mask_of, 8)
    note = read(tree).notes[-1]
    share = np.mean([drawn.indices(i, 8) == 0 for i in range(COUNT)])
    assert f'0 ({share:.1%})' in note and str(tmp_path / 'classes.txt') in note


@pytest.mark.parametrize(
    ('mask_of', 'is_numbered', 'may_be'),
    [
        (lambda i: drawn.indices(i, 3 + i), True, False),
        (lambda i: drawn.with_palette(drawn.indices(i, 3 + i)), True, False),
        (lambda i: drawn.indices(i, 5), False, True),
        (lambda i: drawn.indices(i, 2) * np.uint16(9), False, True),
        (lambda i: drawn.indices(i, 1 + i % 2), False, True),
        (lambda i: drawn.indices(i, 3 + i) % 5, False, False),
        (lambda i: drawn.indices(i, 3 + i) * 2, False, True),
        (lambda i: drawn.indices(i, 3) + np.uint8(i) * (drawn.indices(i, 3) > 0), False, True),
    ],
    ids=[
        'numbers',
        'palette',
        'as many in each',
        '16 bits',
        'few',
        'several areas',
        'even',
        'tracks',
    ],
)
def test_numbers_that_differ_in_each_mask_are_objects(
    tmp_path: Path, mask_of: Callable, is_numbered: bool, may_be: bool
):
    def as_image(i: int) -> Image.Image:
        mask = mask_of(i)
        return mask if isinstance(mask, Image.Image) else Image.fromarray(mask)

    tree = draw(tmp_path, as_image, 8)
    found = recognise(tree)
    assert found.format.name == ('numbered-masks' if is_numbered else 'class-masks')
    # The other way to read them is there if it is asked for, but not spoken of without a reason.
    assert any('Class masks' in line for line in found.others) == is_numbered
    assert any('`format=numbered-masks`' in line for line in found.others) == may_be
    assert recognise(tree, task='instance').format.name == 'numbered-masks'
    assert read(tree).mask_indices
    if not is_numbered:
        assert all(image.objects for image in read(tree, 'numbered-masks').images)
    else:
        objects = {int(i.path.stem): len(i.objects) for i in read(tree, 'numbered-masks').images}
        assert objects == {i: 3 + i for i in range(COUNT)}


def test_numbers_that_stay_with_their_objects_are_said(tmp_path: Path):
    """The layout of the Cell Tracking Challenge."""
    for i in range(COUNT):
        for sequence in ('01', '02'):
            drawn.put(drawn.photograph(i, 3).convert('L'), tmp_path / sequence / f't{i:03}.tif')
            mask = Image.fromarray(drawn.indices(i, 3).astype(np.uint16))
            drawn.put(mask, tmp_path / f'{sequence}_GT' / 'SEG' / f'man_seg{i:03}.tif')
    found = recognise(Tree(tmp_path))
    (other,) = found.others
    assert found.format.name == 'class-masks' and '`format=numbered-masks`' in other
    assert len(read(Tree(tmp_path), 'numbered-masks').images) == 2 * COUNT


@pytest.mark.parametrize('mask_of', [lambda i: i % 3 + 1, lambda i: 2])
def test_one_number_in_each_mask_is_said_if_it_differs(tmp_path: Path, mask_of: Callable):
    tree = draw(tmp_path, lambda i: Image.fromarray(drawn.indices(i, 1) * np.uint8(mask_of(i))), 1)
    assert bool(recognise(tree).others) == (mask_of(0) != mask_of(1))


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('classes.txt', 'no\na\nb\n'),
        ('class_dict.csv', 'name,r,g,b\nno,0,0,0\na,128,0,0\nb,0,128,0\n'),
    ],
)
def test_values_with_names_are_not_said_to_be_objects(tmp_path: Path, name: str, content: str):
    tree = draw(tmp_path, lambda i: drawn.with_palette(drawn.indices(i)))
    assert recognise(tree).others
    (tmp_path / name).write_text(content)
    assert not recognise(Tree(tmp_path)).others


@pytest.mark.parametrize('are_layers', [False, True], ids=['nested', 'layers'])
def test_numbers_that_touch_the_one_before_are_classes(tmp_path: Path, are_layers: bool):
    def mask_of(i: int) -> Image.Image:
        pixels = np.zeros(drawn.SIZE[::-1], np.uint8)
        for number in range(1, 5 + i % 2):
            inner = pixels[6 * number :] if are_layers else pixels[5 * number : -5 * number]
            inner[:, 5 * number : -5 * number] = number
        return Image.fromarray(pixels)

    for i in range(COUNT):
        drawn.put(drawn.photograph(i), tmp_path / 'images' / f'{i}.jpg')
        drawn.put(mask_of(i), tmp_path / 'masks' / f'{i}.png')
    assert recognise(Tree(tmp_path)).format.name == 'class-masks'


def test_names_make_numbers_classes(tmp_path: Path):
    tree = draw(tmp_path, lambda i: Image.fromarray(drawn.indices(i, 3 + i)), 8)
    (tmp_path / 'classes.txt').write_text('\n'.join('abcdefghi'))
    assert recognise(Tree(tree.root)).format.name == 'class-masks'


def test_black_and_white_in_16_bits_is_two_classes(tmp_path: Path):
    labels = read(draw(tmp_path, lambda i: _in_16_bits(drawn.black_and_white(i))), None)
    assert len(labels.classes) == 2 and class_of_each(labels, 0).max() == 1


def _in_16_bits(mask: Image.Image) -> Image.Image:
    return Image.fromarray((np.asarray(mask) > 0).astype(np.uint16) * 65535)


@pytest.mark.parametrize(
    ('name', 'one', 'other'),
    [
        ('classes.txt', 'sky\na\nb\n', 'sky\nb\na\n'),
        (
            '_classes.csv',
            'Pixel Value, Class\n0, sky\n1, a\n',
            'Pixel Value, Class\n0, a\n1, sky\n',
        ),
        ('labelmap.txt', 'a:128,0,0::\nb:0,128,0::\n', 'a:0,128,0::\nb:128,0,0::\n'),
    ],
)
def test_tables_that_contradict_each_other_are_refused(
    tmp_path: Path, name: str, one: str, other: str
):
    for folder, text in dict(a=one, b=other).items():
        draw(tmp_path / folder, lambda i: shades([0, 1, 2], i))
        (tmp_path / folder / name).write_text(text)
    with pytest.raises(UserError, match=f'a/{name}, b/{name} have different classes'):
        read(Tree(tmp_path))
    (tmp_path / 'b' / name).write_text(one)
    assert read(Tree(tmp_path)).classes


def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path):
    draw(tmp_path, lambda i: shades([0, 1, 2], i))
    (tmp_path / 'classes.txt').write_bytes('sky\nrivi\xe8re\nb\n'.encode('cp1252'))
    with pytest.raises(UserError, match='classes.txt, which has names .* save it as UTF-8'):
        read(Tree(tmp_path))


def test_the_palette_of_voc():
    assert [voc_colour(index) for index in (0, 1, 2, 3, 8, 20)] == [
        (0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (64, 0, 0), (0, 64, 128),
    ]  # fmt: skip


def test_values_of_palettes_have_an_index_and_a_colour(tmp_path: Path):
    file = drawn.put(drawn.with_palette(np.array([[0, 4]], np.uint8)), tmp_path / 'a.png')
    value = read_values(file)[0, 1].item()
    assert without_palette(value, by_colour=False) == 4
    assert without_palette(value, by_colour=True) & 0xFFFFFF == 128


def test_panoptic_masks_are_class_masks(tmp_path: Path):
    content = {
        'images': [{'id': i, 'file_name': f'{i:03}.jpg'} for i in range(4)],
        'categories': [{'id': 7, 'name': 'cat'}, {'id': 92, 'name': 'sky'}],
        'annotations': [],
    }
    for i in range(4):
        if i < 3:
            drawn.put(drawn.photograph(i), tmp_path / f'train/{i:03}.jpg')
        # The number of a segment means another category in each image.
        numbers = drawn.indices(i).astype(int) * 1000
        pixels = np.stack([numbers % 256, numbers // 256, numbers * 0], -1).astype(np.uint8)
        drawn.put(Image.fromarray(pixels), tmp_path / f'annotations/panoptic_train/{i:03}.png')
        segments = [{'id': 1000, 'category_id': (7, 92)[i % 2]}]
        segments += [{'id': 2000, 'category_id': (92, 7)[i % 2]}, {'id': 3000, 'category_id': 7}]
        content['annotations'] += [
            {'image_id': i, 'file_name': f'{i:03}.png', 'segments_info': segments}
        ]
    (tmp_path / 'annotations/panoptic_train.json').write_text(json.dumps(content))
    labels = made.read(tmp_path)
    assert [[item.label for item in image.objects] for image in labels.images] == [
        ['cat', 'sky'], ['sky', 'cat'], ['cat', 'sky']
    ]  # fmt: skip
    for i, image in enumerate(labels.images):
        assert area(image.objects[1], image.size) == (drawn.indices(i) == 2).sum()
    kinds = Counter(problem.kind for problem in labels.problems)
    assert kinds == {'images that were not found': 1, 'masks without a pixel': 3}

    content['annotations'][0]['image_id'] = 99
    content['annotations'][1]['segments_info'][1]['category_id'] = 5
    (tmp_path / 'annotations/panoptic_train.json').write_text(json.dumps(content))
    labels = made.read(tmp_path)
    assert [image.path.name for image in labels.images] == ['002.jpg']
    what = 'annotations that cannot be read'
    first, second = (problem.detail for problem in labels.problems if problem.kind == what)
    assert 'annotations[0]' in first and 'unknown image_id 99' in first
    assert 'annotations[1]' in second and 'unknown category_id 5' in second
