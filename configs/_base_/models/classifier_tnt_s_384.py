# For fine-tuning at 384 pixels, as DeiT: no stochastic depth; the sentence table is resized.
_base_ = './classifier_tnt_s.py'

model = dict(
    backbone=dict(
        pretrain_img_size=384,
        drop_path_rate=0.0,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
    )
)
