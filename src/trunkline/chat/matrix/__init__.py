"""Matrix, by `matrix-nio`."""
