"""Trained models at work: on images, folders, videos and webcams, exported, or in a hub.

A host library is imported only when one of its models is loaded.
"""
