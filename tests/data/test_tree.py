"""The image that a label file means is found, and no other of its name."""

from pathlib import Path

import pytest

from ptnt_mm.workbench.data.tree import Tree


@pytest.mark.parametrize(
    ('files', 'name', 'near', 'found'),
    [
        (('photos/a.png', 'masks/a.png'), 'a.jpg', '', 'photos/a.png'),
        (('masks/a.png', 'b.jpg'), 'images/a.jpg', '', None),
        (('runs/detect/a.jpg', 'b.jpg'), 'images/a.jpg', '', None),
        (('SegmentationClass/a.png', 'b.jpg'), '/home/me/a.jpg', '', None),
        (('my_masks/set/a.png',), 'my_masks/a.png', '', 'my_masks/set/a.png'),
        # Images next to their label files, in a folder called labels.
        (('labels/a.png',), 'x/a.jpg', 'labels', 'labels/a.png'),
        (('results/a.png', 'images/a.png'), 'C:\\data\\a.png', '', 'images/a.png'),
    ],
)
def test_pictures_that_are_no_images_are_not_taken(
    tmp_path: Path, files: tuple, name: str, near: str, found: str | None
):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b'-')
    image = Tree(tmp_path).find_image(name, tmp_path / near)
    assert image == (found and tmp_path / found)
