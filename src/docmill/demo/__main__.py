"""`python -m docmill.demo`: see a workflow run, live. Exit code 0: every claim held; 1: one did not."""

import argparse
import os
import signal
import sys
from pathlib import Path
from time import monotonic

import orjson
from rich.console import Console

from docmill.bootstrap import open_app
from docmill.demo import ending
from docmill.demo.fleet import Fleet
from docmill.demo.installation import folder, write_settings
from docmill.demo.play import play
from docmill.demo.summary import sum_up
from docmill.model.errors import DocmillError
from docmill.settings import load_settings


def main() -> int:
    """Run the demo as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m docmill.demo", description="A sample workflow, live.")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stdout; the rest on stderr")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave database, documents and logs in this folder")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds until the demo gives up (%(default)g)")
    began = monotonic()
    arguments = parser.parse_args()
    console = Console(stderr=arguments.json, highlight=False)
    # As with Ctrl-C: workers and the temporary folder must go whichever way we end.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with folder(arguments.keep) as home, Fleet(os.environ, home) as fleet:
            write_settings(home, fleet.open_office())
            with open_app(load_settings()) as app:
                played = play(app, home, fleet, console, began=began, timeout=arguments.timeout)
                summary = sum_up(app, home, played)
    except DocmillError as error:
        console.print(f"\nThe demo failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\nInterrupted; processes and temporary files are gone.", style="yellow")
        return 130
    ending.show(console, summary, arguments.keep)
    if arguments.json:
        sys.stdout.write(orjson.dumps(summary.document(), option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0 if summary.kept else 1


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
