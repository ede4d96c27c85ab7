"""The durable engine: pure decisions (`decide`, `retry`, `state`), and the lanes, runner and sweeper that apply them.

May use `model`, `templates`, `db` and `plugin`. Knows no domain: documents, extraction and review never appear here.
"""
