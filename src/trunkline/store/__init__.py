"""Backends of the interfaces that `core` declares."""
