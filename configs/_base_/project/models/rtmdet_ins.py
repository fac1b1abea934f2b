# RTMDet-Ins (2212.07784): RTMDet's boxes, and for each a small network that draws its mask from
# maps that all objects share.
_base_ = './rtmdet.py'

model = dict(
    # The maps of masks are made from all levels, each resized to the first.
    data_preprocessor=dict(pad_mask=True, pad_size_divisor=128),
    bbox_head=dict(
        type='RTMDetInsSepBNHead',
        share_conv=True,
        pred_kernel_size=1,
        act_cfg=dict(type='SiLU', inplace=True),
        loss_mask=dict(type='DiceLoss', loss_weight=2.0, eps=5e-6, reduction='mean'),
    ),
    test_cfg=dict(nms=dict(iou_threshold=0.6), mask_thr_binary=0.5),
)
