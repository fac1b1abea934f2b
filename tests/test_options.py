"""Options: their names in Python and on a command line."""

import pytest

from ptnt_mm.options import as_flags


@pytest.mark.parametrize(
    ('text', 'flags'),
    [
        ('`work_dir`', '--work-dir'),
        ('`score_thr=0.3`: too low', '--score-thr 0.3: too low'),
        ('or `overwrite=True`', 'or --overwrite'),
        ('`resume=auto`', '--resume'),
        ('`draw=False`', '--no-draw'),
        ('`model.backbone.with_cp=True`', '--cfg-options model.backbone.with_cp=True'),
        ('run `ptnt weights`, `A` and `a.py`', 'run `ptnt weights`, `A` and `a.py`'),
    ],
)
def test_commands_print_flags_for_arguments(text: str, flags: str):
    assert as_flags(text) == flags
