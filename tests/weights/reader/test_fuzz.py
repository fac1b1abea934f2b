"""A few of the files that ``fuzz_reader.py`` generates."""

import pytest

from .fuzz_reader import fuzz, outcomes

pytestmark = pytest.mark.slow


def test_strange_files_change_nothing_and_raise_one_kind_of_error(tmp_path):
    fuzz(120, tmp_path, again=True)
    assert {'read', 'refused', 'damaged'} <= outcomes.keys()
