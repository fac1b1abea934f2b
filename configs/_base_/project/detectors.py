# The models of `ptnt new --detector`: the name of each is that of its fragment in models/.
#
# `finest` is the stride of its first level, `coarsest` that of the last one that it resizes with
# any backbone if it is not 32, and `smallest` the side of the smallest object that it finds, all in
# pixels. `anchors` lists the settings for anchors below its usual 32 pixels, by the side of the
# smallest. The usual ones stay: with half the usual sides alone, every object would be found on a
# map half as fine. `head_lr` is the learning rate of neck and head as a multiple of a pretrained
# backbone's.
detectors = dict(
    gfl=dict(task='detection', finest=8, smallest=21, head_lr=5),
    retinanet=dict(
        task='detection',
        finest=8,
        smallest=21,  # two thirds of its smallest anchor
        anchors={
            16: dict(
                bbox_head=dict(
                    anchor_generator=dict(
                        scales=[2, 3, 4, 6],  # usual: 4, 5 and 6.3
                        octave_base_scale=None,
                        scales_per_octave=None,
                    )
                )
            )
        },
    ),
    atss=dict(task='detection', finest=8, smallest=21),
    tood=dict(task='detection', finest=8, smallest=21),
    rtmdet=dict(task='detection', finest=8, smallest=21),
    cascade=dict(
        task='detection',
        finest=8,
        smallest=21,
        anchors={16: dict(rpn_head=dict(anchor_generator=dict(scales=[2, 4])))},
    ),
    mask_rcnn=dict(
        task='instance',
        finest=4,
        smallest=8,  # two cells of its finest map
        anchors={
            16: dict(rpn_head=dict(anchor_generator=dict(scales=[4, 8]))),
            8: dict(rpn_head=dict(anchor_generator=dict(scales=[2, 4, 8]))),
        },
    ),
    condinst=dict(task='instance', finest=8, smallest=16),
    solov2=dict(task='instance', finest=4, coarsest=64, smallest=8),
    rtmdet_ins=dict(task='instance', finest=8, coarsest=128, smallest=16),
    semantic_fpn=dict(task='semantic', finest=4, smallest=8),
    segformer=dict(task='semantic', finest=4, smallest=8),
    upernet=dict(task='semantic', finest=4, smallest=8),
    classifier=dict(task='classification', finest=4, smallest=None),
)

# Those that `ptnt new` uses if none is named.
defaults = dict(
    detection='gfl', instance='mask_rcnn', semantic='semantic_fpn', classification='classifier'
)
