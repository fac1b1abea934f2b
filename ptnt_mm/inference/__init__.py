"""From images, folders, videos and webcams to pictures and JSON: what ``ptnt infer`` does.

Nothing here imports a host library before a model of it is asked for.
"""
