"""Use cases shared by the edges: submit, list, show, cancel and watch jobs; store and validate templates.

Every edge (CLI, API, workers) calls these and adds nothing but its own manners. No edge is imported here.
"""
