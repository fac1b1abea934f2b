# COCO with training images of many sizes, as DETR began and Swin's configs made usual: half of them
# are scaled to a short side of 480 to 800 pixels, half are cropped first. Ours: the PyramidTNT
# paper trains at one size.
_base_ = 'mmdet::_base_/datasets/coco_detection.py'

long_side = 1333
resize = dict(
    type='RandomChoiceResize',
    scales=[(long_side, short_side) for short_side in range(480, 801, 32)],
    keep_ratio=True,
)
crop = [
    dict(
        type='RandomChoiceResize',
        # The long side is no limit here: what is too long is cropped.
        scales=[(4200, short_side) for short_side in (400, 500, 600)],
        keep_ratio=True,
    ),
    dict(
        type='RandomCrop',
        crop_type='absolute_range',
        crop_size=(384, 600),
        allow_negative_crop=True,
    ),
]
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='RandomChoice', transforms=[[resize], [*crop, resize]]),
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
