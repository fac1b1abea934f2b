"""Classifiers: an image in, class logits out."""

from ptnt_mm.models.classifiers.pyramid_tnt import PyramidTNTClassifier

__all__ = ['PyramidTNTClassifier']
