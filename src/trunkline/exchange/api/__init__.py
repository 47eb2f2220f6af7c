"""The exchange over HTTP: one table of routes, which the application serves and the OpenAPI document describes."""
