"""Agents that launchers on several machines share: leases, and what an agent's runner remembers, in PostgreSQL."""
