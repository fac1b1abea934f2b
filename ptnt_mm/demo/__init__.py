"""The demo data set: real photographs and drawn objects, composed into COCO-format detection.

    photographs (what scikit-image bundles) -> sprites (objects and clutter) -> scenes (one picture
    with the owner of each pixel) -> coco (annotations) -> dataset (the folder)

Needs OpenCV and scikit-image; nothing is imported until a submodule is.
"""
