"""How people install what only some installations need."""


def to_install(*extras: str) -> str:
    """The command that brings extras, from a registry or from a checkout."""
    listed = ",".join(extras)
    return f"pip install 'docmill[{listed}]', or '.[{listed}]' in a checkout"
