"""The protocols. Every folder has the same shape: messages, codec, serve, drive."""
