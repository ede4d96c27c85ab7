"""The hot statements, named, per dialect, straight through the driver.

`rows` says what goes in and comes out; `postgres` and `sqlite` implement the same `HotSql` protocol and pass the same
contract suite. All of them run inside a transaction that the caller opened.
"""
