"""Traces for OpenTelemetry: off, and nothing of it imported, unless somebody names an endpoint."""
