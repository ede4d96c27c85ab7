"""Stand-ins and proofs for tests: the oracle of the engine's semantics, the driver that compares with it, plans.

`oracle` and `facts` never import `docmill.engine.decide` or `docmill.engine.retry`: they are the second opinion. Only
`plans` needs Hypothesis. Nothing in production may import this package.
"""
