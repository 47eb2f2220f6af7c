"""Agents and wires in one process: the services of `trunkline up`, and what keeps them running."""
