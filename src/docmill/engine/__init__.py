"""The durable engine: pure decisions (`state`, `events`, `decide`, `retry`) and the shell that makes them lasting.

The shell is the store (one transaction per batch), lane A (our own SQL), lane B (processors), the runner (computes),
pools, heartbeat, sweeper and wake-ups. The engine knows nothing of documents, people or HTTP.
"""
