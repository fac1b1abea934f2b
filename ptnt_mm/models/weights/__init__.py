"""Published weights of the backbones: find, recognise, rename and load them."""
