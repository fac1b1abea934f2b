# Mask R-CNN with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A demonstration, not a benchmark: narrow heads, few proposals, small images, short schedule.
_base_ = [
    '../_base_/project/models/mask_rcnn.py',
    '../_base_/datasets/demo_instance.py',
    '../_base_/schedules/demo.py',
    '../_base_/default_runtime.py',
]

model = dict(
    # Four images are too few for the statistics of BatchNorm.
    backbone=dict(drop_path_rate=0.0, norm_cfg=dict(type='GN', num_groups=5)),
    # The smallest objects are about 16 pixels wide.
    rpn_head=dict(anchor_generator=dict(scales=[4])),
    roi_head=dict(
        bbox_roi_extractor=dict(finest_scale=28),
        bbox_head=dict(num_classes=4),
        mask_roi_extractor=dict(finest_scale=28),
        mask_head=dict(num_classes=4),
    ),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=500, max_per_img=200),
        rcnn=dict(sampler=dict(num=64)),
    ),
    test_cfg=dict(rpn=dict(nms_pre=300, max_per_img=100)),
)

train_dataloader = dict(batch_size=4)

default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(max_keep_ckpts=2),
    visualization=dict(score_thr=0.4),
)
randomness = dict(seed=0)
