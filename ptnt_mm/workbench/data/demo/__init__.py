"""The demo data set: photographs and drawn objects, composed into scenes in COCO format.

    photographs (bundled with scikit-image) -> sprites (objects and clutter) -> scenes (a picture
    and the object that owns each pixel) -> coco (annotations) -> dataset (the folder)

Needs OpenCV and scikit-image, which are imported only when a submodule is.
"""
