"""From an exception to a sentence, a place and a piece of advice."""
