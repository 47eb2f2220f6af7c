"""A folder that has a Tryll server, its Python and its models, and runs elsewhere without an installation."""
