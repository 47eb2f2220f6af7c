"""Checks of servers that speak OpenAI's HTTP API: Chat Completions, Responses, and what belongs to them."""
