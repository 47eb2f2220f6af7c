"""Listening: sound in, and what was said."""
