"""The `docmill` command: a thin edge over `docmill.services` and `docmill.bootstrap`.

Data goes to stdout, progress and errors to stderr. Heavy imports wait inside the commands, so that `--help` answers in
a blink. Exit codes: 0 done, 1 something failed, 2 wrong use, 130 interrupted, 141 nobody reads our output any more.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--version" in given and set(given) <= {"--version", "--json"}:
        from docmill import __version__

        print(f'{{"version": "{__version__}"}}' if "--json" in given else f"docmill {__version__}")
        return 0
    from docmill.cli.program import run

    return run(given)
