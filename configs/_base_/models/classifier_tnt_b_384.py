_base_ = './classifier_tnt_s_384.py'

_base_.model.backbone.arch = 'base'
_base_.model.backbone.init_cfg.checkpoint = (
    'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/tnt/tnt_b_82.9.pth.tar'
)
_base_.model.head.in_channels = 640
