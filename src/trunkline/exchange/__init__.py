"""Agents and wires in one process: what `trunkline up` runs."""
