"""OpenAI-compatible HTTP: agents as models of `/v1/chat/completions` and `/v1/responses`.

This package is the `serve` end: `messages` (what is asked, in either format), `codec` (JSON and Server-Sent Events),
`chat` and `responses` (the two formats), `serve` (the application). The drive end, a client of the same format, is
where models are asked: `trunkline.models.openai`.
"""
