"""`python -m docmill.demo`: see Docmill at work. Exit code 0: every claim held; 1: one did not."""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from docmill.model.errors import DocmillError


def main() -> int:
    """Run the demo as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m docmill.demo", description="Docmill at work, live.")
    parser.add_argument(
        "act",
        nargs="?",
        choices=("documents", "workflow"),
        default="documents",
        help="sample documents become data (%(default)s), or a workflow with models, people and a killed worker",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stdout; the rest on stderr")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave database, documents and logs in this folder")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds until the demo gives up (%(default)g)")
    arguments = parser.parse_args()
    console = Console(stderr=arguments.json, highlight=False)
    # As with Ctrl-C: workers and the temporary folder must go whichever way we end.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if arguments.act == "documents":
            from docmill.demo.documents import run
        else:
            from docmill.demo.workflow import run
        return 0 if run(arguments, console) else 1
    except DocmillError as error:
        console.print(f"\nThe demo failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\nInterrupted; processes and temporary files are gone.", style="yellow")
        return 130


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
