"""What is installed, and how to fix it."""
