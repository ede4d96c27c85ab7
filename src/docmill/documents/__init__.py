"""Documents: bytes that came in, where they are kept, and what stands on their pages.

Intake, blobs, sniffing and reading live here. What a document means (fields, values, confidence) does not: that is
`docmill.extraction`. Parsers of foreign bytes run only in limited children, by functions of this package that a child
can import.
"""
