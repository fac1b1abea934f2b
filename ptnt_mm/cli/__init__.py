"""One file for each command: parse, resolve, call the rooms below."""
