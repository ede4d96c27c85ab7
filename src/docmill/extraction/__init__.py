"""Extraction: from what stands on the pages to fields with evidence and calibrated confidence.

Field schemas, the four readers, grounding, checks, confidence and its measures live here. Reading bytes does not (that
is `docmill.documents`), nor do people's decisions (`docmill.review`). Every reader returns the same record:
`Extraction` of `docmill.extraction.result`.
"""
