"""`make demo`: sample documents become data, by the command that everybody uses; values are held against the truth.

`make demo-workflow` shows the engine below it: papers become transactions, a worker is killed, a person asked, somebody
outside calls back. Everything is real: worker processes, a SQLite database, SIGKILL, commands, HTTP and callbacks. Only
the "models" of the workflow are stand-ins that read text with regular expressions and take their time. Nothing outside
this package may import it.
"""
