"""The compiled operators of mmcv, made of torchvision's and torch's.

``mmcv.ops`` calls the functions of one extension module, ``mmcv._ext``. `extension` takes its
place, and `place` says where; each other file holds the operators of one kind. This package imports
nothing else of ptnt_mm, so that mmdet and mmseg can use it without our registrations.
"""
