"""The network over HTTP: the application, the table of its routes, and the routes."""
