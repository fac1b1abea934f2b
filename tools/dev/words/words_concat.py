_base_ = '../../../configs/demo_retinanet_ptnt_ti.py'
custom_imports = dict(imports=['ptnt_mm', 'tools.dev.words.word_neck'])

_base_.model.backbone.type = 'PyramidTNTWithWords'
_base_.model.neck[0] = dict(
    type='WordNeck',
    in_channels=[160, 320, 320],
    word_channels=[10, 20, 20],
    form='concat',
)
