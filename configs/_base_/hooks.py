# For mmdet's own train.py and those of the other hosts: there, a config that sets custom_imports or
# custom_hooks itself must repeat these entries. `ptnt train` adds those that are missing.
_base_ = './custom_hooks.py'

custom_imports = dict(
    imports=['ptnt_mm', 'ptnt_mm.weights.safe_loading'], allow_failed_imports=False
)
