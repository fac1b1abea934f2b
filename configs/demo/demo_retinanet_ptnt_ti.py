# RetinaNet with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A demonstration, not a benchmark: narrow pyramid and head, small images, short schedule.
_base_ = [
    '../_base_/project/models/retinanet.py',
    '../_base_/datasets/demo_detection.py',
    '../_base_/schedules/demo.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(drop_path_rate=0.0),
    bbox_head=dict(num_classes=4, stacked_convs=2),
)

train_dataloader = dict(batch_size=4)
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(max_keep_ckpts=2),
    visualization=dict(score_thr=0.4),
)
randomness = dict(seed=0)
