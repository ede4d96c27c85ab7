"""The HTTP API: thin routes over services, `/api/v1`.

`app` puts it together, `routes` has one module for each noun. What every request meets on its way is here: `safety`
(hosts, origins, headers), `access` (who asks and whether they may, before the body is read), `problems` (errors as RFC
9457 tells them). No SQL, no rule of the domain: what a route decides, a service decides for every edge.
"""
