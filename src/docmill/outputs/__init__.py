"""What leaves Docmill as files: JSON and Parquet for each document, exports of many, and SQL over all of them.

`write` is called while a document is processed; it must be cheap and needs no database. `exporting` and `querying`
read the Parquet files with DuckDB, which only they import. Nothing here changes what was extracted.
"""
