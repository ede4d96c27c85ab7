"""One module per revision. Revisions spell out their own columns: what they did must not change with the tables."""
