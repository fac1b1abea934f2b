# UPerNet (1807.10221): a pyramid of the backbone's maps, the coarsest of which is pooled at four
# sizes.
_base_ = './segformer.py'

model = dict(decode_head=dict(type='UPerHead', pool_scales=(1, 2, 3, 6)))
