"""Read configs and explain exceptions; nothing runs here but the constructor of a model.

To explain another exception, add a row to `CAUSES` in `causes.py`, and if none of the functions in
`recognisers.py` recognises it, a function there. The `Kind` of the row decides where it is used;
`Kind` lists the places. ``tests/config/test_causes.py`` has a row for each.
"""
