# For fine-tuning at 384 pixels, as DeiT: no stochastic depth; the sentence table is resized.
_base_ = './classifier_tnt_s.py'

model = dict(
    backbone=dict(
        pretrain_img_size=384,
        drop_path_rate=0.0,
        # Fetched once; without a network the error says where to put the file.
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/'
            'tnt/tnt_s_81.5.pth.tar',
        ),
    )
)
