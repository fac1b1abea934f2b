"""Necks: maps in, maps out, between a backbone and a feature pyramid."""

from ptnt_mm.models.necks.transposed_conv import TransposedConvNeck

__all__ = ['TransposedConvNeck']
