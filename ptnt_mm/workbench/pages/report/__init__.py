"""The page of ``ptnt report``: training runs, compared."""
