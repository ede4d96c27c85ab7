"""Review: what a person must look at first, who looks at it, and what they decide.

Pure: `priority`, `fields`, `merging`. The SQL is in `rows`, `queue` and `assignment`. Who may do what is decided above,
in `docmill.services.review`; how a value is read and checked below, in `docmill.extraction`.
"""
