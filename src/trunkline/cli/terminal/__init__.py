"""A conversation on a terminal: what `trunkline chat` shows, and what people type there."""
