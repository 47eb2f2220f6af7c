"""This terminal as a chat, for trying the bridge."""
