"""Conformance kits: black-box checks of anybody's implementation of a wire."""
