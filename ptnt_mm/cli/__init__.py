"""One file for each command: parse the arguments and call the API."""
