"""The page of ``ptnt report --data``: what a config trains on."""
