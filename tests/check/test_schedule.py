"""Findings about the batch and the learning rate."""

import pytest
from mmengine.config import Config

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.inspection import Inspection
from ptnt_mm.workbench.config.view import ConfigView

from .spoilt import Demo, counted


def _found(gpus: int = 1, **settings: object) -> list[tuple[Severity, str]]:
    optimizer = dict(type='AdamW', lr=1e-4)
    base = dict(train_dataloader=dict(batch_size=2), optim_wrapper=dict(optimizer=optimizer))
    inspection = Inspection(ConfigView(Config({**base, **settings})), ('train',), gpus)
    inspection.check_settings()
    found = (finding for finding in inspection.findings if finding.where == 'Learning rate')
    return [(finding.severity, str(finding)) for finding in found]


@pytest.mark.parametrize('scale', [dict(), dict(auto_scale_lr=dict(enable=False))])
def test_a_schedule_without_a_batch_is_not_confirmed(scale: dict):
    """Like those of mmseg."""
    (severity, text), = _found(8, **scale)  # fmt: skip
    assert severity == Severity.NOTE and 'for this batch' not in text
    assert '0.0001; the config does not state its batch' in text and 'yours is 16' in text


@pytest.mark.parametrize(
    ('gpus', 'enable', 'severity', 'words'),
    [
        (8, False, Severity.OK, '0.0001, which is for this batch'),
        (1, False, Severity.WARNING, 'for batch 16; `auto_scale_lr=True` would make it 1.25e-05'),
        (1, True, Severity.OK, 'for batch 16, scaled to 1.25e-05'),
    ],
)
def test_a_schedule_with_a_batch(gpus: int, enable: bool, severity: Severity, words: str):
    (found,) = _found(gpus, auto_scale_lr=dict(base_batch_size=16, enable=enable))
    assert found[0] == severity and words in found[1]


def test_a_schedule_by_iterations_that_ends_early_has_the_advice_of_the_rule(demo: Demo):
    demo.options |= {
        'param_scheduler': [dict(type='PolyLR', by_epoch=False, end=30)],
        'train_cfg.max_epochs': 10,
        'train_dataloader.batch_size': 2,
    }
    (found,) = (
        finding for finding in counted(demo.findings()) if finding.where == 'param_scheduler'
    )
    assert found.severity is Severity.WARNING and 'train with `epochs`' in found.advice
    assert 'ends after 30 of 80 iterations: the rest' in str(found)
