"""The model gateway: one way to ask any model, with every limit kept and every call recorded.

`gateway` asks; `admission` is what happens in the database before and after a call; `breaker`, `bucket` and `budget`
decide, purely; `prices` knows what tokens cost; `local` is the provider that needs neither key nor network. Other
providers come from plug-ins. Nothing here knows of jobs or templates; the engine gets the gateway handed in.
"""
