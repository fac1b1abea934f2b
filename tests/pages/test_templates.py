"""Pictures of pages: ignored pixels are transparent, whatever the number of classes."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from ptnt_mm.utils.colours import class_colours
from ptnt_mm.workbench.data.class_masks import IGNORED
from ptnt_mm.workbench.pages.page import class_map


@pytest.mark.parametrize('number', [1, 2, 3, 4, 16, 17, 255])
def test_ignored_pixels_are_transparent(number: int):
    labels = np.array([[0, number - 1, IGNORED]], np.uint8)
    palette = class_colours(number)
    content = base64.b64decode(class_map(labels, palette).partition(',')[2])
    (pixels,) = np.asarray(Image.open(io.BytesIO(content)).convert('RGBA'))
    assert [tuple(pixel[:3].tolist()) for pixel in pixels[:2]] == [palette[0], palette[-1]]
    assert pixels[:, 3].tolist() == [255, 255, 0]
