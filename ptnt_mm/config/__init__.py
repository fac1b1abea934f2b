"""What a config says: reads it, and runs nothing but the constructor of its model."""
