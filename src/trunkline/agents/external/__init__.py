"""Agents that are programs of their own, one module per wire that they are reached through."""
