"""`python -m docmill` is the `docmill` command."""

import sys

from docmill.cli import main

if __name__ == "__main__":
    sys.exit(main())
