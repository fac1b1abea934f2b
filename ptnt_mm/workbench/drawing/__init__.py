"""Objects and classes drawn on images."""
