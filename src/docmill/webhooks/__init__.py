"""Signed messages over HTTP, as the Standard Webhooks scheme has them: sign, verify, post.

Knows nothing of jobs, settings or a database; whoever sends or receives messages stands on this.
"""
