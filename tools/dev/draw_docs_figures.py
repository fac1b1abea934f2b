"""Draw the figures of docs/how_it_works.md as SVG: python tools/dev/draw_docs_figures.py."""

import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from ptnt_mm.cli.arguments import Parser

IMAGES = Path(__file__).resolve().parents[2] / 'docs' / 'images'

INK, FAINT, LINE = '#1f2933', '#7b8794', '#52606d'
WORD, WORD_PALE = '#d9730d', '#fdebd8'
SENTENCE, SENTENCE_PALE = '#1f6fb2', '#dcebf8'
TABLE, TABLE_PALE = '#6b4fa0', '#e9e3f5'
PLAIN = '#f1f4f7'

# A column of text is narrower than a page: what is read there has to be larger here.
_ENLARGED = 1.2

# Text stays text, and the same figure is the same file.
_STYLE = {
    'svg.fonttype': 'none',
    'svg.hashsalt': 'ptnt_mm',
    'font.family': 'sans-serif',
    'font.sans-serif': ['DejaVu Sans', 'Verdana', 'Arial'],
}


class Canvas:
    """A page measured in pixels, with the origin at the upper left.

    Args:
        width: Of the page.
        height: Of the page.
    """

    def __init__(self, width: int, height: int):
        self.figure = Figure(figsize=(width / 72, height / 72))
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.axis('off')

    def text(self, x: float, y: float, words: str, size: float = 13, **style) -> None:
        """Words around a point, or from it with ``ha='left'``."""
        style = {'ha': 'center', 'va': 'center', 'color': INK, **style}
        self.axes.text(x, y, words, fontsize=_ENLARGED * size, **style)

    def box(self, x: float, y: float, w: float, h: float, words: str, edge: str, face: str) -> None:
        """A rounded box with words in it."""
        style = 'round,pad=0,rounding_size=6'
        patch = FancyBboxPatch((x, y), w, h, style, fc=face, ec=edge, lw=1.4, mutation_aspect=1)
        self.axes.add_patch(patch)
        self.text(x + w / 2, y + h / 2, words, 12, linespacing=1.35)

    def cell(self, x: float, y: float, w: float, h: float, face: str, edge: str, line=1.0) -> None:
        """A plain rectangle."""
        self.axes.add_patch(Rectangle((x, y), w, h, fc=face, ec=edge, lw=line))

    def grid(self, x: float, y: float, side: float, cells: int, face: str, edge: str) -> None:
        """A square of cells x cells."""
        step = side / cells
        for row in range(cells):
            for column in range(cells):
                self.cell(x + column * step, y + row * step, step, step, face, edge, 0.8)

    def detour(self, start: float, end: float, y: float, far: float, gap: float) -> None:
        """A residual connection around a box, by the height ``far``."""
        self.axes.plot([start, start, end], [y, far, far], color=FAINT, lw=1.3)
        self.arrow((end, far), (end, y - gap), FAINT)

    def arrow(self, start: tuple, end: tuple, colour: str = LINE) -> None:
        """A straight arrow."""
        patch = FancyArrowPatch(
            start,
            end,
            arrowstyle='-|>',
            mutation_scale=13,
            color=colour,
            lw=1.5,
            shrinkA=0,
            shrinkB=0,
        )
        self.axes.add_patch(patch)

    def plus(self, x: float, y: float) -> None:
        """A sum."""
        self.axes.plot(x, y, 'o', ms=17, mfc='white', mec=LINE, mew=1.3)
        self.text(x, y, '+', 15)


def two_streams() -> Canvas:
    """An image, its sentences and words, and the four stages that both run through."""
    page = Canvas(1000, 380)
    page.text(105, 24, 'image', 13, weight='bold')
    page.grid(30, 45, 150, 5, SENTENCE_PALE, SENTENCE)
    page.grid(60, 75, 30, 4, WORD_PALE, WORD)
    page.text(105, 215, 'a sentence: 8 x 8 pixels', 11, color=SENTENCE, backgroundcolor='white')
    page.grid(75, 240, 60, 4, WORD_PALE, WORD)
    page.text(105, 320, 'its 4 x 4 words', 12, color=WORD)
    for x in (60, 90):
        page.axes.plot([x, 75 if x == 60 else 135], [105, 240], color=FAINT, lw=0.8, ls='--')
    page.box(215, 85, 70, 195, 'stem', LINE, PLAIN)
    page.arrow((184, 120), (213, 120))
    page.text(620, 24, 'words: (B·N, 16, c)', 13, color=WORD, weight='bold')
    page.text(620, 352, 'maps for the neck: (B, C, h, w)', 13, color=SENTENCE, weight='bold')
    for stage in range(4):
        x = 320 + stage * 172
        page.box(x, 85, 108, 60, f'words\nin stage {stage + 1}', WORD, WORD_PALE)
        page.box(x, 220, 108, 60, f'sentences\nin stage {stage + 1}', SENTENCE, SENTENCE_PALE)
        page.arrow((x + 52, 147), (x + 52, 218), WORD)
        page.arrow((x + 52, 282), (x + 52, 316), SENTENCE)
        page.text(x + 52, 328, f'stride {8 * 2**stage}', 12)
        if stage == 0:
            page.text(x + 60, 183, 'added', 11, color=WORD, ha='left')
        if stage < 3:
            page.text(x + 140, 100, 'merge', 11, color=FAINT)
            page.text(x + 140, 235, 'merge', 11, color=FAINT)
        begin = 287 if stage == 0 else x - 62
        page.arrow((begin, 115), (x - 2, 115))
        page.arrow((begin, 250), (x - 2, 250))
    return page


def nested_block() -> Canvas:
    """The words of a sentence, their way into it, and the sentences."""
    page = Canvas(1000, 400)
    top, bottom = 95, 305
    page.text(28, 22, 'words of each sentence: 16 tokens of c', 13, ha='left', color=WORD)
    page.text(28, 382, 'sentences of the image: N tokens of C', 13, ha='left', color=SENTENCE)
    page.arrow((25, top), (88, top), WORD)
    page.box(90, top - 32, 132, 64, 'norm, attention\n16 x 16 words', WORD, WORD_PALE)
    page.plus(252, top)
    page.box(290, top - 32, 100, 64, 'norm\nMLP', WORD, WORD_PALE)
    page.plus(422, top)
    page.arrow((222, top), (242, top), WORD)
    page.arrow((262, top), (288, top), WORD)
    page.arrow((390, top), (412, top), WORD)
    page.arrow((432, top), (985, top), WORD)
    page.text(985, top - 18, 'to the next block', 11, ha='right', color=FAINT)
    for start, end in ((60, 252), (270, 422)):
        page.detour(start, end, top, top - 44, 11)
    page.arrow((480, top), (480, 148), WORD)
    page.box(380, 150, 200, 64, 'laid end to end: 16·c\nnorm, linear, norm: C', WORD, WORD_PALE)
    page.arrow((480, 214), (480, bottom - 11), WORD)
    page.plus(480, bottom)
    page.arrow((25, bottom), (470, bottom), SENTENCE)
    page.arrow((490, bottom), (530, bottom), SENTENCE)
    page.box(
        532, bottom - 34, 176, 68, 'norm, attention\nN x N / r² sentences', SENTENCE, SENTENCE_PALE
    )
    page.plus(738, bottom)
    page.box(775, bottom - 34, 90, 68, 'norm\nMLP', SENTENCE, SENTENCE_PALE)
    page.plus(899, bottom)
    page.arrow((708, bottom), (728, bottom), SENTENCE)
    page.arrow((748, bottom), (773, bottom), SENTENCE)
    page.arrow((865, bottom), (889, bottom), SENTENCE)
    page.arrow((909, bottom), (985, bottom), SENTENCE)
    for start, end in ((505, 738), (755, 899)):
        page.detour(start, end, bottom, bottom + 46, -11)
    page.box(610, 158, 220, 48, 'relative position table', TABLE, TABLE_PALE)
    page.arrow((640, 206), (630, bottom - 36), TABLE)
    return page


def merging() -> Canvas:
    """2 x 2 sentences become one, and their 8 x 8 words 4 x 4."""
    page = Canvas(900, 400)
    shades = ('#fdebd8', '#f9d2aa', '#f4b97d', '#ee9f50')
    page.text(28, 28, 'words', 14, ha='left', color=WORD, weight='bold')
    for number, shade in enumerate(shades):
        x, y = 60 + number % 2 * 78, 55 + number // 2 * 78
        page.grid(x, y, 66, 4, shade, WORD)
    page.text(28, 218, '2 x 2 sentences, 16 words in each', 12, ha='left')
    page.arrow((226, 127), (310, 127))
    for number, shade in enumerate(shades):
        page.grid(330 + number % 2 * 66, 61 + number // 2 * 66, 66, 4, shade, WORD)
    page.text(420, 218, 'one map of 8 x 8 words', 12)
    page.arrow((486, 127), (668, 127))
    page.text(577, 104, '3 x 3 convolution, stride 2', 11)
    page.grid(700, 94, 66, 4, '#f6c592', WORD)
    page.text(760, 218, '16 words of one sentence', 12)
    page.text(28, 258, 'sentences', 14, ha='left', color=SENTENCE, weight='bold')
    page.grid(58, 280, 88, 4, 'white', SENTENCE)
    page.grid(58, 280, 44, 2, SENTENCE_PALE, SENTENCE)
    page.text(102, 384, 'h x w', 12)
    page.arrow((170, 324), (668, 324))
    page.text(420, 305, '3 x 3 convolution, stride 2', 11)
    page.grid(700, 291, 66, 2, 'white', SENTENCE)
    page.cell(700, 291, 33, 33, SENTENCE_PALE, SENTENCE)
    page.text(760, 384, 'h / 2 x w / 2, rounded up', 12)
    return page


def folding() -> Canvas:
    """The products of attention with a position table, and the single one that they fold into."""
    page = Canvas(1000, 450)

    def matrix(x: float, y: float, w: float, h: float, name: str, size: str, edge, face) -> None:
        page.cell(x, y, w, h, face, edge, 1.5)
        page.text(x + w / 2, y + h / 2, name, 15)
        page.text(x + w / 2, y + h + 15, size, 11, color=FAINT)

    sentence, table = (SENTENCE, SENTENCE_PALE), (TABLE, TABLE_PALE)
    page.text(
        28, 26, 'as published: a sum of two matrices of all pairs', 13, ha='left', weight='bold'
    )
    matrix(60, 55, 36, 130, 'q', 'N x d', *sentence)
    page.text(118, 120, '·', 20)
    matrix(140, 55, 80, 36, 'kᵀ', 'd x M', *sentence)
    page.text(232, 75, '/ √d', 14, ha='left')
    page.text(330, 120, '+', 22)
    matrix(390, 55, 52, 130, 'Q', 'N x N₀', *table)
    page.text(480, 80, '·', 20)
    matrix(525, 55, 56, 52, 'R', 'N₀ x M₀', *table)
    page.text(616, 80, '·', 20)
    matrix(650, 55, 80, 50, 'Kᵀ', 'M₀ x M', *table)
    page.text(790, 120, '=', 22)
    page.cell(840, 55, 80, 130, 'white', LINE, 1.5)
    page.text(880, 120, 'logits', 13)
    page.text(880, 200, '4 x N x M: 269 MiB', 11, color=FAINT)
    heading = 'folded: one product of longer vectors, never written down'
    page.text(28, 240, heading, 13, ha='left', weight='bold')
    matrix(50, 270, 74, 130, 'q / √d', 'd', *sentence)
    matrix(124, 270, 62, 130, 'Q R', 'M₀', *table)
    page.text(210, 335, '·', 20)
    matrix(235, 270, 80, 42, 'kᵀ', '', *sentence)
    page.cell(235, 312, 80, 50, TABLE_PALE, TABLE, 1.5)
    page.text(275, 337, 'Kᵀ', 15)
    page.text(275, 380, '(d + M₀) x M', 11, color=FAINT)
    page.text(375, 335, '=', 22)
    page.axes.add_patch(Rectangle((420, 270), 80, 130, fc='white', ec=LINE, lw=1.5, ls='--'))
    page.text(460, 335, 'logits', 13, color=FAINT)
    lines = (
        'N, M: queries and keys of the image',
        'N₀, M₀: those of the pretraining size',
        'Q, K: bicubic, from that grid to this one',
        'R: the learned table of a stage',
    )
    for number, line in enumerate(lines):
        page.text(535, 290 + number * 30, line, 11.5, ha='left')
    return page


def padding() -> Canvas:
    """What is added to an image of 1333 x 800, and the grids of the four stages."""
    page = Canvas(1000, 400)
    scale, left, top = 0.36, 40, 50
    page.text(
        left, 26, 'stage 4: 21 x 13 sentences of 64 x 64 pixels', 13, ha='left', weight='bold'
    )
    page.cell(left, top, 1333 * scale, 800 * scale, SENTENCE_PALE, 'none')
    page.cell(left + 1333 * scale, top, 11 * scale, 800 * scale, WORD, 'none')
    page.cell(left, top + 800 * scale, 1344 * scale, 32 * scale, '#e4e7eb', 'none')
    for column in range(22):
        x = left + column * 64 * scale
        page.axes.plot([x, x], [top, top + 832 * scale], color=SENTENCE, lw=0.7)
    for row in range(14):
        y = top + row * 64 * scale
        page.axes.plot([left, left + 1344 * scale], [y, y], color=SENTENCE, lw=0.7)
    page.text(
        left + 660 * scale,
        top + 400 * scale,
        '1333 x 800 pixels',
        15,
        backgroundcolor=SENTENCE_PALE,
    )
    page.text(
        left, 376, 'the last row is half beyond the image: 12.5 rows become 13', 12, ha='left'
    )
    page.text(545, 70, '11 columns of padding,\nto a multiple of 32', 12, ha='left', color=WORD)
    page.arrow((543, 70), (left + 1341 * scale, 85), WORD)
    rows = [('', 'columns', 'rows', 'after the neck')]
    for stage, (columns, lines) in enumerate(((168, 100), (84, 50), (42, 25), (21, 13))):
        doubled = ('336 x 200', '168 x 100', '84 x 50', '42 x 25')[stage]
        rows.append((f'stage {stage + 1}, stride {8 * 2**stage}', columns, lines, doubled))
    for number, row in enumerate(rows):
        y = 150 + number * 34
        for x, entry in zip((550, 755, 830, 930), row, strict=True):
            style = {'ha': 'left'} if x == 550 else {}
            page.text(x, y, str(entry), 12, color=FAINT if number == 0 else INK, **style)
    page.text(
        550,
        340,
        '13 rows doubled are 26: cropped to 25,\nthe rows of the next finer map',
        12,
        ha='left',
    )
    return page


def figures() -> Iterator[tuple[str, Canvas]]:
    """Every figure, by the name of its file."""
    for draw in (two_streams, nested_block, merging, folding, padding):
        yield draw.__name__, draw()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--out', type=Path, default=IMAGES, help='where to')
    return parser.run(lambda args: draw_all(args.out), arguments)


def draw_all(folder: Path) -> None:
    """Write every figure into a folder."""
    with matplotlib.rc_context(_STYLE):
        for name, page in figures():
            file = folder / f'{name}.svg'
            page.figure.savefig(file, metadata={'Date': None}, facecolor='white')
            print(file)


if __name__ == '__main__':
    sys.exit(main())
