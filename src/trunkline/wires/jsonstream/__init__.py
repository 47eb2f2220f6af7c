"""A coding agent spoken to in JSON lines over standard input and output."""
