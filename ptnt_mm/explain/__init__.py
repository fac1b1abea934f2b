"""From an exception to a sentence, a place and a piece of advice.

To explain another exception, add a row to `CAUSES` in `causes.py`, and if none of the functions in
`recognisers.py` recognises it, a function there. The `Kind` of the row decides where it is used;
`Kind` lists the places. ``tests/explain/test_causes.py`` has a row for each.
"""
