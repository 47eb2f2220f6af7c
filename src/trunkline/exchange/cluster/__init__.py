"""Several exchanges that are one: sessions are owned by one node each, and any node takes any client."""
