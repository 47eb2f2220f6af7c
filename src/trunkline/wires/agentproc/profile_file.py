"""The former place of `profile.file`, which programs of others import."""

from trunkline.wires.agentproc.profile.file import find, load, parse

__all__ = ["find", "load", "parse"]
