"""The wires of an exchange: how the clients of each join its sessions."""
