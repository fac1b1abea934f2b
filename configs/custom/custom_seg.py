# Your own masks: change the two lines below, then run
#     ptnt check my_configs/custom_seg.py
# The folder holds images/{train,val}/NAME.jpg and masks/{train,val}/NAME.png. Each mask pixel is a
# class index, 0 for the first class, or 255 for pixels to ignore.
_base_ = '../ade20k/semantic_fpn_ptnt_s_40k_ade20k.py'

data_root = 'data/custom_seg/'
classes = ('background', 'ball', 'coin', 'crate', 'cup')

# Only ADE20K's masks start at 1 and use 0 for pixels to ignore.
load_masks = dict(type='LoadAnnotations', reduce_zero_label=False)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    load_masks,
    dict(type='RandomResize', scale=(2048, 512), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(512, 512), cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(2048, 512), keep_ratio=True),
    load_masks,
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        metainfo=dict(classes=classes),
        pipeline=train_pipeline,
    )
)
val_dataloader = dict(
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        img_suffix='.jpg',
        seg_map_suffix='.png',
        metainfo=dict(classes=classes),
        pipeline=test_pipeline,
    )
)
test_dataloader = val_dataloader

model = dict(decode_head=dict(num_classes=len(classes)))
