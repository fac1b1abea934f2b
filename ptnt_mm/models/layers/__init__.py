"""Plain ``nn.Module`` pieces of the backbones and necks: torch only, no registry."""
