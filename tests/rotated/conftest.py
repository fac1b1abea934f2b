"""A drawn DOTA, and a small detector for it; mmrotate is for the forks of the hosts alone."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from ptnt_mm.workbench.config.zoo import config_path

_CONFIG = """
_base_ = '{base}'
model = dict(
    backbone=dict(arch='tiny'),
    neck=dict(in_channels=[80, 160, 320, 320], out_channels=16),
    bbox_head=dict(num_classes=2, in_channels=16, feat_channels=16, stacked_convs=1),
    test_cfg=dict(score_thr=0.0, max_per_img=20),
)
def with_size(pipeline):
    return [dict(step, scale=(64, 64)) if 'scale' in step else dict(step) for step in pipeline]
train_pipeline, val_pipeline = map(with_size, (_base_.train_pipeline, _base_.val_pipeline))
def loader(pipeline):
    return dict(
        num_workers=0,
        persistent_workers=False,
        dataset=dict(
            data_root='{root}/',
            metainfo=dict(classes=('ship', 'large-vehicle')),
            ann_file='annfiles/',
            data_prefix=dict(img_path='images/'),
            pipeline=pipeline,
        ),
    )
train_dataloader = loader(train_pipeline)
val_dataloader = test_dataloader = loader(val_pipeline)
del with_size, loader
"""


@pytest.fixture
def dota(tmp_path: Path) -> Path:
    """A folder with four images of a rotated rectangle each, and a config."""
    pytest.importorskip('mmrotate', reason='mmrotate is for the forks of the hosts')
    rng = np.random.default_rng(0)
    for folder in ('images', 'annfiles'):
        (tmp_path / folder).mkdir()
    for number in range(4):
        image = rng.integers(0, 80, (64, 64, 3), dtype=np.uint8)
        corners = cv2.boxPoints(((32.0, 30.0), (30.0, 12.0), float(rng.uniform(5, 85))))
        cv2.fillPoly(image, [corners.astype(np.int32)], (30, 60, 200))
        cv2.imwrite(str(tmp_path / 'images' / f'{number}.png'), image)
        numbers = ' '.join(f'{value:.1f}' for value in corners.flatten())
        (tmp_path / 'annfiles' / f'{number}.txt').write_text(f'{numbers} ship 0\n')
    base = config_path('rotated_retinanet_ptnt_s_1x_dota')
    (tmp_path / 'config.py').write_text(_CONFIG.format(base=base, root=tmp_path))
    return tmp_path
