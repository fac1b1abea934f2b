"""What is installed, and how to mend it."""
