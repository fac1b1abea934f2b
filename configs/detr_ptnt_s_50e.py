# DETR with PyramidTNT-S on its map of stride 32, 50 epochs. 8 GPUs x 2 images. Ours.
_base_ = '_base_/detr_50e.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='PyramidTNT',
        arch='small',
        out_indices=(2,),
        drop_path_rate=0.1,
    ),
    neck=dict(in_channels=[512]),
)
