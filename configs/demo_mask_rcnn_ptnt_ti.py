# Mask R-CNN with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A tour of the code, not a benchmark: narrow heads, few proposals, small images, short schedule.
_base_ = [
    '_base_/models/mask_rcnn_ptnt_ti.py',
    '_base_/datasets/demo_instance.py',
    '_base_/schedules/demo.py',
    '_base_/default_runtime.py',
]

width = 64
num_classes = 4
_base_.model.neck[1].out_channels = width
model = dict(
    backbone=dict(drop_path_rate=0.0),
    rpn_head=dict(
        in_channels=width,
        feat_channels=width,
        # The smallest objects are about 16 pixels wide.
        anchor_generator=dict(scales=[4]),
    ),
    roi_head=dict(
        # Objects are taken from deeper levels than their pixels would be in photographs of COCO.
        bbox_roi_extractor=dict(out_channels=width, finest_scale=14),
        bbox_head=dict(in_channels=width, fc_out_channels=256, num_classes=num_classes),
        mask_roi_extractor=dict(out_channels=width, finest_scale=14),
        mask_head=dict(
            num_convs=2, in_channels=width, conv_out_channels=width, num_classes=num_classes
        ),
    ),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=500, max_per_img=200),
        rcnn=dict(sampler=dict(num=64)),
    ),
    test_cfg=dict(rpn=dict(nms_pre=300, max_per_img=100)),
)

default_hooks = dict(logger=dict(interval=10), checkpoint=dict(max_keep_ckpts=2))
randomness = dict(seed=0)
