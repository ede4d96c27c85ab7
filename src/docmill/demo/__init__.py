"""`make demo`: papers become transactions, live: a worker is killed, a person asked, a process outside calls back.

Everything is real: worker processes, a SQLite database, SIGKILL, commands, HTTP and callbacks. Only the "models" are
stand-ins that read text with regular expressions and take their time. Nothing outside this package may import it.
"""
