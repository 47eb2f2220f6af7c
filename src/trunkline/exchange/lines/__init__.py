"""The wires of an exchange: how clients of each come to its sessions."""
