"""The compiled operators of mmcv, built from torchvision's and torch's.

``mmcv.ops`` calls the functions of one extension module, ``mmcv._ext``. `extension` replaces it,
and `installation` installs it; each other file contains the operators of one kind. This package
imports nothing else of ptnt_mm, so that mmdet and mmseg can use it without our registrations.
"""
