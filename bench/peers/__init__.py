"""Other queues and durable engines on the same workloads, each in a virtual environment of its own.

`catalogue` says who they are and how they are tuned, `environment` installs them, `system` drives them from outside;
`role` and one module per peer run inside the peer's environment.
"""
