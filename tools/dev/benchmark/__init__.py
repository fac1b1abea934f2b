"""How fast backbones are and how much memory they take, side by side in one process."""
