"""The former place of `drive.sync`, which programs of others import."""

from trunkline.wires.tryll.drive.sync import SyncAgent, SyncTryll

__all__ = ["SyncAgent", "SyncTryll"]
