"""Tables contain their cells unchanged."""

from ptnt_mm.utils.tables import markdown, new_listing, new_table, to_text


def test_a_listing_has_no_rules_and_no_spaces_at_its_ends():
    table = new_listing('', 'found')
    table.add_row('torch', '2.15.0')
    table.add_row('', 'x')
    assert to_text(table).splitlines() == ['       found', 'torch  2.15.0', '       x']


def test_text_is_shown_as_it_is_and_never_wrapped():
    cells = ('[red]text[/red] :cup: \x1b', 'word ' * 100 + 'end')
    for table in (new_table('a', 'b'), new_listing('a', 'b')):
        table.add_row(*cells)
        shown = to_text(table)
        assert cells[1] in shown and '[red]text[/red] :cup:' in shown
        assert len(shown.splitlines()) == len(table.rows) + 1 + (table.box is not None)


def test_a_table_of_a_page_aligns_its_numbers():
    assert markdown(['config', 'AP'], [['`a`', '42.0']]).splitlines() == [
        '| config | AP |',
        '| --- | ---: |',
        '| `a` | 42.0 |',
    ]
