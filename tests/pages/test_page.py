"""The page in a browser: it draws, filters, sorts, fits phone and paper, and loads nothing."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import PHONE, chromium, height, needs_chromium, quiet_page, width

from ptnt_mm.workbench.cli.main import run

from . import made_runs
from .made_runs import make_detector, make_segmenter
from .test_segmentation import FOUND, TRUTH

pytestmark = needs_chromium


@pytest.fixture(scope='module')
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('runs')
    runs = [
        make_detector(folder, 'boxes <b>'),
        make_detector(folder, 'masks', ('bbox', 'segm')),
        # 14 images: two more than are shown at once.
        make_segmenter(folder, 'maps', np.tile(TRUTH, (7, 1, 1)), np.tile(FOUND, (7, 1, 1))),
    ]
    (folder / 'maps_data' / 'images' / '13.jpg').write_text('no image')
    assert run('report', [*map(str, runs), '--out', str(folder / 'page.html')]) == 0
    return folder / 'page.html'


@pytest.fixture(scope='module')
def browser() -> Iterator:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, file: Path) -> Iterator:
    with quiet_page(browser, file) as page:
        wait_for_charts(page)
        yield page


def wait_for_charts(page) -> None:
    """Wait until the charts in all open sections are drawn."""
    page.wait_for_function(
        "[...document.querySelectorAll('.section[open] .chart')]"
        ".every((chart) => chart.querySelector('.drawing svg'))"
    )


def names(page, gallery: str) -> list[str]:
    return page.locator(f'#{gallery} .card b').all_inner_texts()


def control(gallery, name: str):
    return gallery.locator(f'.controls [name={name}]')


def test_everything_is_there(page, file: Path):
    assert file.stat().st_size < 8e6
    assert page.title() == 'Training report: boxes <b>, masks, maps'
    assert page.locator('.tile h3').all_inner_texts() == ['boxes <b>', 'masks', 'maps']
    assert page.locator('.chart').count() > 10
    # AP at an IoU of 0.50, as in test_detection_errors.
    assert '0.168' in page.locator('#twelve').inner_text()
    assert page.locator('#kinds tbody tr').count() == 6
    assert names(page, 'detections') == ['2.jpg', '1.jpg']


def test_headings_sort(page):
    table = page.locator('#kinds')
    first = lambda: table.locator('tbody th').first.inner_text()  # noqa: E731
    heading = table.locator('th', has_text='boxes <b>: AP')
    heading.get_by_role('button').click()
    assert heading.get_attribute('aria-sort') == 'descending' and first().endswith('classification')
    heading.get_by_role('button').click()
    assert heading.get_attribute('aria-sort') == 'ascending'
    assert not first().endswith('classification')
    table.get_by_role('button', name='kind').click()
    assert first().endswith('background') and heading.get_attribute('aria-sort') is None


def test_detections_are_filtered_and_sorted(page):
    gallery = page.locator('#detections')
    control(gallery, 'kind').select_option('duplicate')
    assert names(page, 'detections') == ['1.jpg']
    assert gallery.locator('.count').inner_text() == '1 of the 2 worst of 2 images'
    shown = ['D ball 0.80: duplicate'] * 2  # one in each run
    assert gallery.locator('.card title').all_text_contents() == ['ball', 'cup', *shown]
    control(gallery, 'class').select_option('cup')
    assert names(page, 'detections') == [], 'the duplicate is a ball'
    control(gallery, 'kind').select_option('both')
    assert names(page, 'detections') == ['2.jpg']
    control(gallery, 'score').fill('0.55')
    assert names(page, 'detections') == [], 'its score is 0.5'
    # The ball with a score of 0.6 counts as missed above that threshold.
    control(gallery, 'kind').select_option('missed')
    control(gallery, 'class').select_option('ball')
    missed = gallery.locator('.card figcaption span').first
    assert missed.inner_text() == '1 + 1 errors', 'in both runs'
    control(gallery, 'score').fill('0.65')
    assert missed.inner_text() == '2 + 2 errors'
    control(gallery, 'run').select_option('masks')
    assert missed.inner_text() == '2 errors'
    assert gallery.locator('.panel span').all_inner_texts()[:2] == ['ground truth', 'masks']
    control(gallery, 'kind').select_option('any')
    control(gallery, 'sort').select_option('name')
    assert names(page, 'detections') == ['1.jpg', '2.jpg']


def test_maps_are_filtered_and_more_of_them_shown(page):
    gallery = page.locator('#segments')
    more = gallery.get_by_role('button', name='Show more')
    assert len(names(page, 'segments')) == 12
    more.click()
    assert len(names(page, 'segments')) == 14 and more.is_hidden()
    control(gallery, 'class').select_option('cup')
    assert len(names(page, 'segments')) == 7, 'half of them have no cup'
    control(gallery, 'iou').fill('0.45')
    assert names(page, 'segments') == []
    control(gallery, 'iou').fill('1')
    control(gallery, 'class').select_option('all')
    control(gallery, 'sort').select_option('best first')
    assert gallery.locator('figcaption span').first.inner_text() == 'IoU 1.00'


def test_an_image_that_cannot_be_read_has_its_name_in_its_place(page):
    gallery = page.locator('#segments')
    assert '13.jpg is not an image, or damaged' in gallery.locator('.note').inner_text()
    assert page.locator('#detections .note').count() == 0
    gallery.get_by_role('button', name='Show more').click()
    card = gallery.locator('.card', has_text='13.jpg')
    assert card.locator('svg text').all_text_contents() == ['13.jpg'] * 3
    assert card.locator('svg image').count() == 2, 'its maps'


def test_runs_have_one_colour_everywhere(page):
    def colours(place: str) -> list[str]:
        return [one.get_attribute('style') for one in page.locator(place).all()]

    boxes, masks, maps = colours('.tile')
    assert len({boxes, masks, maps}) == 3
    # Both have boxes, and their difference.
    assert colours('#twelve .run') == [boxes, masks, masks, masks]
    assert colours('#confusion .run') == [boxes, masks] and colours('#segmentation .run')[0] == maps
    assert colours('#detections .card .run')[:2] == [boxes, masks]


def test_a_picture_is_enlarged_beside_the_ground_truth(page):
    dialog = page.get_by_role('dialog')
    assert dialog.is_hidden()
    card = page.locator('#detections .card').first
    card.locator('.panel').nth(1).click()
    assert dialog.locator('p').inner_text() == card.locator('b').inner_text()
    assert dialog.locator('figure span').all_inner_texts() == ['ground truth', 'boxes <b>']
    assert dialog.locator('figure:nth-child(2) .shape').count() > 0
    dialog.get_by_role('button', name='Close').click()
    assert dialog.is_hidden()
    card.locator('.panel').first.click()
    assert dialog.locator('figure span').all_inner_texts() == ['ground truth']


LABELS = """svg => [...svg.querySelectorAll('.label:not(.crowded)')].map((label) => {
    const [plate, text] = [...label.children].map((part) => part.getBoundingClientRect());
    return {height: plate.height, inside: text.left >= plate.left && text.right <= plate.right,
            visible: plate.top >= svg.getBoundingClientRect().top - 1};
})"""


def test_labels_keep_their_size_at_every_zoom(page):
    panel = page.locator('#detections .panel').nth(1)
    panel.locator('.label rect[width]').first.wait_for()
    small = panel.locator('svg').evaluate(LABELS)
    panel.click()
    dialog = page.get_by_role('dialog')
    page.wait_for_function("document.querySelector('dialog .label rect')?.hasAttribute('width')")
    page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    large = dialog.locator('figure:nth-child(2) svg').evaluate(LABELS)
    assert 0 < len(small) <= len(large)
    for label in small + large:
        assert label['height'] == pytest.approx(1.3 * 12, rel=0.02)
        assert label['inside'] and label['visible']
    widths = [place.locator('svg').last.bounding_box()['width'] for place in (panel, dialog)]
    assert widths[1] > 1.5 * widths[0]


def test_labels_of_boxes_at_one_place_are_side_by_side(page):
    page.evaluate(
        """() => {
        const box = '<g class="label" data-box="[50, 50, 100, 60]"><rect/><text>cup 0.5</text></g>';
        document.body.insertAdjacentHTML('beforeend',
          `<div id="crowd"><svg viewBox="0 0 400 200" width="400">${box.repeat(4)}</svg></div>`);
        watchLabels(document.getElementById('crowd'));
    }"""
    )
    page.locator('#crowd .label rect[width]').last.wait_for()
    rooms = page.locator('#crowd .label rect').evaluate_all(
        'all => all.map(({x, y, width, height}) => '
        '[x, y, width, height].map(({baseVal}) => baseVal.value))'
    )
    at, sides = np.split(np.array(rooms), 2, axis=1)
    shared = np.minimum((at + sides)[:, None], at + sides) - np.maximum(at[:, None], at)
    assert (shared.clip(0).prod(axis=2) > 0.1).sum() == len(rooms) == 4


def test_a_curve_is_chosen(page):
    chart = page.locator('.chart', has_text='Precision and recall')
    before = chart.locator('.mark-line path').first.get_attribute('d')
    chart.get_by_role('combobox').select_option('cup')
    page.wait_for_function(
        "before => document.querySelector('.chart:has(.vega-bindings) .mark-line path')"
        ".getAttribute('d') !== before",
        arg=before,
    )


def test_a_menu_selects_the_figure_that_runs_are_compared_by(page):
    def headings() -> list[str]:
        shown = page.locator('#classes th button:visible').all_inner_texts()
        return [text.rstrip(' ↕') for text in shown]

    assert headings() == ['class', 'objects', 'boxes <b>: AP', 'masks: AP', 'difference']
    page.locator('[data-table=classes]').select_option('AP50')
    assert headings()[2:] == ['boxes <b>: AP50', 'masks: AP50', 'difference']
    difference = page.locator('#classes tbody tr').first.locator('td:visible').last
    assert difference.inner_text() == '0.000', 'both have the same boxes'


def test_curves_are_smoothed_and_stay_visible(page):
    chart = page.locator('.chart:has(figcaption:text-is("Loss"))')
    # Three runs as they are logged, then smoothed.
    raw, smooth = (chart.locator('.mark-line path').nth(i) for i in (0, 3))
    before = raw.get_attribute('d')
    assert smooth.get_attribute('opacity') == '0'
    page.locator('#smoothing').fill('0.9')
    assert page.locator('#smoothing + output').inner_text() == '0.90'
    faint = "document.querySelector('.chart[data-noisy] .mark-line path').getAttribute('opacity')"
    page.wait_for_function(f"{faint} === '0.25'")
    assert raw.get_attribute('d') == before != smooth.get_attribute('d')
    # The average of 1 and 0.5 with these weights, without the start at 0.
    average = page.evaluate(
        "smoothed([1, 0.5].map((value) => ({ name: 'a', value })), 0.9).map((p) => p.smooth)"
    )
    assert average == pytest.approx([1, (0.09 * 1 + 0.1 * 0.5) / 0.19])


def test_no_label_of_a_chart_is_cut_off(page):
    cut = page.evaluate("""() => [...document.querySelectorAll('.drawing svg')].flatMap((svg) => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 0.5 || box.right > frame.right + 0.5;
        }).map((text) => text.textContent);
    })""")
    assert cut == []


def test_a_phone_shows_the_first_section_and_links_open_others(browser, file: Path):
    with quiet_page(browser, file, viewport=PHONE) as page:
        wait_for_charts(page)
        assert width(page) == 390 and height(page) < 2000
        assert page.locator('.section[open]').count() == 1
        page.get_by_role('link', name='Errors').click()
        assert page.locator('#errors').get_attribute('open') is not None
        wait_for_charts(page)
        assert page.locator('#errors .drawing svg').bounding_box()['width'] > 200
        page.get_by_role('button', name='Open all').click()
        wait_for_charts(page)
        assert page.locator('.section[open]').count() == page.locator('.section').count()
        assert width(page) == 390
        page.get_by_role('button', name='Close all').click()
        assert page.locator('.section[open]').count() == 0


def test_text_from_files_is_only_text(browser, tmp_path: Path, monkeypatch):
    script = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'{{ 7 * 7 }}'
    monkeypatch.setattr(made_runs, 'CLASSES', (script, 'cup'))
    for name in ('TRUTHS', 'FOUND'):
        rows = [
            (i, script if c == 'ball' else c, *rest) for i, c, *rest in getattr(made_runs, name)
        ]
        monkeypatch.setattr(made_runs, name, tuple(rows))
    # Their defaults were set when the module was imported.
    truths = made_runs.TRUTHS, made_runs.CLASSES, 2, ()
    monkeypatch.setattr(made_runs.annotations, '__defaults__', truths)
    found = made_runs.FOUND, made_runs.CLASSES
    monkeypatch.setattr(made_runs.results, '__defaults__', found)
    made = make_detector(tmp_path, 'run')
    work_dir = made.rename(tmp_path / '<img src=x onerror=alert(3)>')
    assert run('report', [str(work_dir), '--out', str(tmp_path / 'page.html')]) == 0
    with quiet_page(browser, tmp_path / 'page.html') as page:
        wait_for_charts(page)
        assert page.locator('#classes tbody th').first.inner_text() == script
        assert page.locator('img').count() == 0 and '49' not in page.locator('h1').inner_text()


def test_a_phone_paper_and_the_dark(page):
    colour = 'getComputedStyle(document.body).backgroundColor'
    page.set_viewport_size(PHONE)
    assert width(page) == 390
    light = page.evaluate(colour)
    page.emulate_media(color_scheme='dark')
    assert page.evaluate(colour) != light
    page.emulate_media(color_scheme='dark', media='print')
    assert page.evaluate(colour) == light, 'paper is white'
    assert page.locator('nav').is_hidden() and page.locator('.controls').first.is_hidden()
