"""Drawing only: curves, charts, panels, and the templates of pages."""
