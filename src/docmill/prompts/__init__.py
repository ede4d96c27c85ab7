"""Prompts: what models are asked, stored in versions, with `{!…}` variables filled from the entity.

`syntax`, `values` and `substitution` are pure; `store` keeps prompts in the database; `files` reads and writes them as
text files. Nothing here calls a model, and nothing here knows the engine: it is handed a resolver by the wiring.
"""
