"""Checks of anybody's Tryll server: frames, sessions, agents and their turns, storages, models."""
