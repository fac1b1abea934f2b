"""The command line: parsers made from the options, and a function for each command."""
