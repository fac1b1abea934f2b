"""The command line: every option, the parsers made from them, and a function for each command."""
