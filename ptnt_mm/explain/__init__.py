"""From an exception to a sentence, a place and an advice."""
