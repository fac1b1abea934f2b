"""The drawings at the end of the demos."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .workplace import load_tool

tool = load_tool('draw_demo')


def draw(*words: object) -> int:
    return tool.main([str(word) for word in words])


def test_pictures_fill_rows_of_one_sheet(tmp_path: Path, capsys):
    (tmp_path / 'pictures' / 'ball').mkdir(parents=True)
    tones = {'1.jpg': 40, '2.png': 80, '3.png': 120, 'ball/4.png': 160, 'ball/5.png': 200}
    for name, tone in tones.items():
        Image.new('RGB', (50, 40), (tone,) * 3).save(tmp_path / 'pictures' / name)
    out = tmp_path / 'sheet.png'
    assert draw(tmp_path / 'pictures', out, '--num-images', 4) == 0
    assert f'Drawing: {out}' in capsys.readouterr().out
    pixels = np.asarray(Image.open(out).convert('L'))
    height, width = pixels.shape
    quarters = [pixels[h, w] for h in (height // 4, -20) for w in (width // 4, -9)]
    assert np.allclose(quarters, [40, 80, 120, 160], atol=2)
    captions = pixels[: tool._LETTERS * 2] > 200
    assert captions[:, : width // 4].any() and captions[:, width // 4 : width // 2].any()


def test_a_classifiers_confusion(tmp_path: Path, monkeypatch):
    found = {'ball/1.jpg': 'ball', 'ball/2.jpg': 'cup', 'cup/1.jpg': 'cup', 'cup/2.jpg': 'cup'}
    images = [dict(file=file, classes=[dict(label=label)]) for file, label in found.items()]
    (tmp_path / 'predictions.json').write_text(json.dumps(dict(images=images)))
    drawn = []
    monkeypatch.setattr(tool.Figure, 'savefig', lambda figure, *_, **__: drawn.append(figure))
    assert draw(tmp_path / 'predictions.json', tmp_path / 'confusion.png') == 0
    assert [text.get_text() for text in drawn[0].axes[0].texts] == ['1', '1', '0', '2']


@pytest.mark.parametrize(
    ('name', 'content'),
    [('damaged.png', 'not pixels'), ('predictions.json', '{"images": [{"detections": []}]}')],
)
def test_what_cannot_be_drawn_is_named(tmp_path: Path, capsys, name: str, content: str):
    file = tmp_path / name
    file.write_text(content)
    source = file if file.suffix == '.json' else tmp_path
    assert draw(source, tmp_path / 'sheet.jpg') == 1
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize('source', ['pictures', 'predictions.json'])
def test_nothing_to_draw(tmp_path: Path, capsys, source: str):
    assert draw(tmp_path / source, tmp_path / 'sheet.png') == 1
    assert str(tmp_path / source) in capsys.readouterr().err
