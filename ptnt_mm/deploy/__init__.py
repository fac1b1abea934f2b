"""Run exported files with NumPy, Pillow and a runtime, without torch or a host.

from ptnt_mm.deploy import Deployed

boxes, scores, labels, masks = Deployed('model.onnx')('photo.jpg')  # of a detector
"""

from ptnt_mm.deploy.deployed import Deployed, Detections

__all__ = ['Deployed', 'Detections']
