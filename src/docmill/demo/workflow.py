"""The second act: papers become transactions, live; a worker is killed, a person asked, somebody outside calls back."""

import os
import sys
from argparse import Namespace
from time import monotonic

import orjson
from rich.console import Console

from docmill.bootstrap import open_app
from docmill.demo import ending
from docmill.demo.fleet import Fleet
from docmill.demo.installation import folder, write_settings
from docmill.demo.play import play
from docmill.demo.summary import sum_up
from docmill.settings import load_settings


def run(arguments: Namespace, console: Console) -> bool:
    """Play it; whether every claim held."""
    began = monotonic()
    with folder(arguments.keep) as home, Fleet(os.environ, home) as fleet:
        write_settings(home, fleet.open_office())
        with open_app(load_settings()) as app:
            played = play(app, home, fleet, console, began=began, timeout=arguments.timeout)
            summary = sum_up(app, home, played)
    ending.show(console, summary, arguments.keep)
    if arguments.json:
        sys.stdout.write(orjson.dumps(summary.document(), option=orjson.OPT_INDENT_2).decode() + "\n")
    return summary.kept
