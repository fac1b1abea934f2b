"""The figures of docs/how_it_works.md are what their script draws."""

from pathlib import Path

from draw_docs_figures import draw_all
from pages import ROOT, links


def test_every_figure_is_drawn_and_shown(tmp_path: Path):
    draw_all(tmp_path)
    drawn = {file.name for file in tmp_path.iterdir()}
    kept = ROOT / 'docs' / 'images'
    assert drawn == {file.name for file in kept.glob('*.svg')}
    page = ROOT / 'docs' / 'how_it_works.md'
    assert drawn == {Path(link).name for link in links(page) if link.startswith('images/')}
    for name in drawn:
        # Text stays text: what is read there can be searched and translated.
        assert '<text' in (kept / name).read_text()
        assert (kept / name).stat().st_size < 60_000
