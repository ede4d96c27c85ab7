"""Shares as people read them: in hundredths, and 100 % only where nothing is missing."""


def percent(share: float, digits: int = 0) -> str:
    """`99%` for 0.995 and `99.9%` for 0.9999 with one digit: rounded up, what is nearly sure would look certain."""
    told = f"{share:.{digits}%}"
    if share < 1 and told == f"{1:.{digits}%}":
        return f"{1 - 10 ** -(digits + 2):.{digits}%}"
    return told
