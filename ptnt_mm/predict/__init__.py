"""Trained models at work: on images, folders, videos and webcams, and exported for other runtimes.

A host library is imported only when one of its models is loaded.
"""
