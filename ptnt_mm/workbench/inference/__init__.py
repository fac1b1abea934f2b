"""Inference on images, folders, videos and webcams, for ``ptnt infer``: pictures and JSON.

A host library is imported only when one of its models is loaded.
"""
