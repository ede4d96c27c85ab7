"""Providers that need a key or a server: Gemini, OpenAI, Anthropic, and whatever speaks OpenAI's protocol.

`access` says who they are and what opens them; `clients` holds one connection pool for each; `asking` translates a call
and its answer; `faults` says in our words what went wrong. The libraries are in the extra `docmill[models]` and are
imported when the first call is made. Retries are the engine's: nothing here asks twice.
"""
