# The multi-scale training of DETR and Swin: half of the images are scaled to a short side of 480 to
# 800 pixels, and the other half are cropped first. Our choice: the paper trains at one size.
long_side = 1333
resize = dict(
    type='RandomChoiceResize',
    scales=[(long_side, short_side) for short_side in range(480, 801, 32)],
    keep_ratio=True,
)
crop = [
    dict(
        type='RandomChoiceResize',
        # No limit on the long side, because the crop below limits it.
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
multi_scale = dict(type='RandomChoice', transforms=[[resize], [*crop, resize]])
