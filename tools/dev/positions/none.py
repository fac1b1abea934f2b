_base_ = 'peg.py'

model = dict(backbone=dict(position='none'))
