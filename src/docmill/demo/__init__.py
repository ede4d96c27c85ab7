"""`make demo`: invoices through a workflow, live, with a worker killed on the way, and the sums checked at the end.

Everything is real: worker processes, a SQLite database, SIGKILL. Only the "model" is a stand-in that reads text with
regular expressions and takes its time. Nothing outside this package may import it.
"""
