"""What is mmseg's own: images with masks of class indices, and the model's crops."""
