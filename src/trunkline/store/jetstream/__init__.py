"""NATS JetStream under several exchanges: who owns a session, and what happened in it."""
