# The backbones of `ptnt new --backbone`, each with the mean and std of its published weights; those
# of PyramidTNT and TNT come from `ptnt weights`. The settings in `pretrained` are added if training
# starts from `weights`, or from a similar file, and those in `own_names` if it has the host's names
# and not those of `weights`; `norm` is its norm_cfg if it starts from random initialisation with
# few images per step.
imagenet = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
pvt_files = 'https://github.com/whai362/PVT/releases/download/v2/'
swin_files = 'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'

# A few images are not enough for the statistics of BatchNorm: those of pretrained weights stay as
# they are, and from random initialisation GroupNorm normalises each image by itself. A stem has as
# many groups as an inner token has channels, which divide the widths of all its layers.
pyramid_tnt = dict(
    pretrained=dict(norm_cfg=dict(type='BN', requires_grad=False), norm_eval=True),
)
cpvt = dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5])
resnet = dict(
    **imagenet,
    pretrained=dict(norm_eval=True, frozen_stages=1),
    norm=dict(type='GN', num_groups=32),
)
swin = dict(
    **imagenet,
    no_decay=['relative_position_bias_table'],
    own_names=dict(convert_weights=False),
)

backbones = dict(
    ptnt_ti=dict(
        **pyramid_tnt,
        settings=dict(type='PyramidTNT', arch='tiny', out_norms=True),
        norm=dict(type='GN', num_groups=5),
        weights='ptnt_ti_distilled',
        lr=2.8e-4,
    ),
    ptnt_s=dict(
        **pyramid_tnt,
        settings=dict(type='PyramidTNT', arch='small', out_norms=True),
        norm=dict(type='GN', num_groups=8),
    ),
    ptnt_m=dict(
        **pyramid_tnt,
        settings=dict(type='PyramidTNT', arch='medium', out_norms=True),
        norm=dict(type='GN', num_groups=12),
    ),
    ptnt_b=dict(
        **pyramid_tnt,
        settings=dict(type='PyramidTNT', arch='base', out_norms=True),
        norm=dict(type='GN', num_groups=16),
    ),
    tnt_s=dict(settings=dict(type='mmengine.TNT', arch='small')),
    tnt_b=dict(settings=dict(type='mmengine.TNT', arch='base')),
    cpvt_ti=dict(**cpvt, settings=dict(type='CPVT', arch='tiny')),
    cpvt_s=dict(**cpvt, settings=dict(type='CPVT', arch='small')),
    cpvt_b=dict(**cpvt, settings=dict(type='CPVT', arch='base')),
    efficientnet_lite0=dict(
        settings=dict(type='TimmFeatures', model='tf_efficientnet_lite0', out_indices=(1, 2, 3, 4)),
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        weights='efficientnet_lite0',
        top_1=75.1,
        pretrained=dict(frozen_norms=True),
        lr=2.8e-4,
    ),
    resnet18=dict(
        **resnet,
        settings=dict(type='mmdet.ResNet', depth=18, norm_eval=False),
        weights='https://download.pytorch.org/models/resnet18-f37072fd.pth',
        top_1=69.8,
    ),
    resnet50=dict(
        **resnet,
        settings=dict(type='mmdet.ResNet', depth=50, norm_eval=False),
        weights='https://download.pytorch.org/models/resnet50-0676ba61.pth',
        top_1=76.1,
    ),
    pvtv2_b0=dict(
        **imagenet,
        settings=dict(
            type='mmdet.PyramidVisionTransformerV2', embed_dims=32, num_layers=[2, 2, 2, 2]
        ),
        weights=pvt_files + 'pvt_v2_b0.pth',
        top_1=70.5,
    ),
    pvtv2_b1=dict(
        **imagenet,
        settings=dict(
            type='mmdet.PyramidVisionTransformerV2', embed_dims=64, num_layers=[2, 2, 2, 2]
        ),
        weights=pvt_files + 'pvt_v2_b1.pth',
        top_1=78.7,
    ),
    swin_t=dict(
        **swin,
        settings=dict(
            type='mmdet.SwinTransformer', embed_dims=96, depths=[2, 2, 6, 2], convert_weights=True
        ),
        weights=swin_files + 'swin_tiny_patch4_window7_224.pth',
        top_1=81.2,
    ),
    swin_s=dict(
        **swin,
        settings=dict(
            type='mmdet.SwinTransformer', embed_dims=96, depths=[2, 2, 18, 2], convert_weights=True
        ),
        weights=swin_files + 'swin_small_patch4_window7_224.pth',
        top_1=83.2,
    ),
)

# Where `ptnt new` looks for pretrained weights if no backbone is named, the best first.
starts = ['efficientnet_lite0', 'ptnt_ti', 'resnet18', 'pvtv2_b0']
