"""Backbones, necks and classifiers of the Transformer-in-Transformer family."""

from ptnt_mm.models.backbones import PyramidTNT
from ptnt_mm.models.classifiers import PyramidTNTClassifier
from ptnt_mm.models.necks import TransposedConvNeck

__all__ = ['PyramidTNT', 'PyramidTNTClassifier', 'TransposedConvNeck']
