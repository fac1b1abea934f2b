"""Draw a demo: pictures of its predictions on one sheet, or the confusion matrix of its classifier.

This command makes a picture of the docs, after `make demo`:

    python tools/draw_demo.py work_dirs/demo/pictures docs/images/demo_predictions.jpg
"""

import argparse
import json
import sys
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image, ImageDraw
from sklearn.metrics import ConfusionMatrixDisplay

PTNT_MM_REGISTERS_LATER = __name__ == '__main__'  # help does not wait for torch

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive
from ptnt_mm.workbench.data.image_files import read_rgb
from ptnt_mm.workbench.drawing.letters import font_of

_WIDTH, _GAP = 1100, 6
"""Pixels of a sheet, and between its pictures."""

_BACKGROUND = '#30363d'  # suits light and dark pages

_LETTERS = 18
_CAPTIONS = ('ground truth', 'predictions')
"""Of the halves of each picture, with the height of the letters in pixels."""

_FULL = 2.0
"""A row is full when it is at least this many times as wide as high."""


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument(
        'source',
        type=Path,
        help='the folder of tools/test.py --show-dir; or a predictions.json of tools/infer.py, '
        'for a folder of images with a subfolder for each class',
    )
    parser.add_argument('out', type=Path, help='the drawing, a .jpg or .png file')
    parser.add_argument(
        '--num-images', type=positive, default=2, help='pictures on the sheet (default: 2)'
    )
    return parser.run(draw_demo, words)


def draw_demo(args: argparse.Namespace) -> None:
    """Write the drawing and print its path, or raise a UserError without anything to draw."""
    if args.source.suffix == '.json':
        draw_confusion(args.source, args.out)
    else:
        draw_sheet(args.source, args.out, args.num_images)
    print(f'Drawing: {args.out}')


def draw_sheet(folder: Path, out: Path, number: int) -> None:
    """Put pictures, evenly chosen by name, into rows as wide as the sheet."""
    files = sorted(file for file in folder.rglob('*') if file.suffix in ('.jpg', '.png'))
    if not files:
        raise UserError(f'{folder} contains no pictures: expected the folder of --show-dir')
    step = max(1, len(files) // number)
    rows = [[]]
    for file in files[step // 2 :: step][:number]:
        if _proportion(rows[-1]) >= _FULL:
            rows.append([])
        rows[-1].append(Image.fromarray(read_rgb(file)))
    heights = [round(_WIDTH / max(_proportion(row), _FULL)) for row in rows]
    strip = 2 * _LETTERS
    size = _WIDTH - _GAP, sum(heights) + strip * len(rows)
    sheet = Image.new('RGB', size, _BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    y = 0
    for row, height in zip(rows, heights, strict=True):
        x = 0
        for picture in row:
            width = round(height * picture.width / picture.height)
            for half, caption in enumerate(_CAPTIONS):
                place = x + half * width // 2 + _LETTERS / 2, y + strip / 2
                pen.text(place, caption, 'white', font_of(_LETTERS), anchor='lm')
            sheet.paste(picture.resize((width - _GAP, height)), (x, y + strip))
            x += width
        y += height + strip
    sheet.save(out, quality=85)


def _proportion(row: list[Image.Image]) -> float:
    """The width of pictures side by side, in heights of the row."""
    return sum(picture.width / picture.height for picture in row)


def draw_confusion(predictions: Path, out: Path) -> None:
    """Count how often each class, the name of an image's folder, is predicted as each class."""
    if not predictions.is_file():
        raise UserError(f'{predictions} is missing: tools/infer.py --out writes it')
    images = json.loads(predictions.read_text(encoding='utf-8'))['images']
    if not all('classes' in image for image in images):
        raise UserError(f'{predictions} has no classes of images: it is not of a classifier')
    truth = [Path(image['file']).parts[0] for image in images]
    found = [image['classes'][0]['label'] for image in images]
    axes = Figure(figsize=(4.6, 4.2), layout='constrained').subplots()
    ConfusionMatrixDisplay.from_predictions(truth, found, cmap='Blues', colorbar=False, ax=axes)
    axes.figure.savefig(out, dpi=120)


if __name__ == '__main__':
    sys.exit(main())
