"""Names near an unknown one are suggested; those that differ only in form are found; numbers."""

import pytest

from ptnt_mm.utils.text import counted, spellings, suggest, unknown_name


@pytest.mark.parametrize(
    ('name', 'said'),
    [('smal', "did you mean 'small'?"), ('MEDIUM ', "did you mean 'Medium'?"), ('huge', '')],
)
def test_the_nearest_name_is_suggested_whatever_its_case(name: str, said: str):
    assert suggest(name, ['tiny', 'small', 'Medium']) == said


def test_letters_in_another_order_are_nearest():
    assert suggest('Rezise', ['ResNet', 'Resize']) == "did you mean 'Resize'?"


def test_a_suggestion_is_worded_for_its_sentence():
    assert suggest('cups', ['ball', 'cup'], '; nearest is {!r}') == "; nearest is 'cup'"


@pytest.mark.parametrize(
    ('name', 'known', 'said'),
    [
        ('smal', ['small'], "unknown arch 'smal': did you mean 'small'? expected one of small"),
        ('huge', ['small'], "unknown arch 'huge': expected one of small"),
        (
            'smal',
            ['small', *map(str, range(20))],
            "unknown arch 'smal': did you mean 'small'?",
        ),
        (
            'huge',
            [*'abcdefghijklmnopqrstuv'],
            "unknown arch 'huge': expected one of a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "
            'q, r, s, t and 2 more',
        ),
    ],
)
def test_known_names_are_listed_if_they_are_few_or_none_is_near(
    name: str, known: list[str], said: str
):
    assert unknown_name('arch', name, known) == said


@pytest.mark.parametrize(
    ('number', 'noun', 'text'),
    [
        (1, 'process', '1 process'),
        (8, 'process', '8 processes'),
        (0, 'image', '0 images'),
        (2, 'epoch', '2 epochs'),
        (8000, 'image', '8,000 images'),
    ],
)
def test_numbers_have_the_right_form_of_their_noun(number: int, noun: str, text: str):
    assert counted(number, noun) == text


@pytest.mark.parametrize(
    ('names', 'are_one'),
    [
        (['RBC', 'rbc'], True),
        (['traffic light', 'Traffic-Light', 'trafficlight', 'traffic_light'], True),
        (['line 1', 'line1'], True),
        (['Straße', 'STRASSE'], True),
        ([' cup', 'cup '], True),
        (['background', '_background_'], True),
        (['1-1', '11'], False),  # rooms and versions
        (['A', 'A-', 'A+'], False),  # marks and blood groups
        (['cup', 'cup'], False),  # the same name
    ],
)
def test_spellings_of_one_name(names: list[str], are_one: bool):
    assert spellings(['other', *names]) == [names] * are_one
