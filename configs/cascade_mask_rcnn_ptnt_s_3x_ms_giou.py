# Cascade Mask R-CNN as Swin and PVTv2 compare backbones in it: box heads of four convolutions with
# SyncBN and one linear layer, and the GIoU loss. The paper's head is not known (arXiv 2201.00978).
_base_ = './cascade_mask_rcnn_ptnt_s_3x_ms.py'

model = dict(
    roi_head=dict(
        bbox_head=[
            dict(
                head,
                type='ConvFCBBoxHead',
                num_shared_convs=4,
                num_shared_fcs=1,
                conv_out_channels=256,
                norm_cfg=dict(type='SyncBN', requires_grad=True),
                reg_class_agnostic=False,
                reg_decoded_bbox=True,
                loss_bbox=dict(type='GIoULoss', loss_weight=10.0),
            )
            for head in _base_.model.roi_head.bbox_head
        ]
    )
)
