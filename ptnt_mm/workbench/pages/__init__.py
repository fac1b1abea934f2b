"""Pages to open in a browser: about training runs, about data, about what a network sees."""
