"""Former path of `ptnt_mm.weights.reader`."""
