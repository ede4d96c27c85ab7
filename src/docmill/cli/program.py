"""The command tree, and the one place where whatever goes wrong becomes a line on stderr and an exit code."""

import os
import sys
from collections.abc import Sequence
from functools import cache

from cyclopts import App, CycloptsError

from docmill import __version__
from docmill.cli import (
    ai,
    audit,
    batches,
    callbacks,
    config,
    database,
    doctor,
    documents,
    evaluating,
    export,
    issues,
    jobs,
    keys,
    learning,
    members,
    process,
    prompts,
    query,
    review,
    review_care,
    review_deciding,
    serving,
    showing,
    templates,
    webhooks,
    worker,
)
from docmill.cli.errors import EXIT_INTERRUPTED, EXIT_PIPE, EXIT_WRONG_USE, WrongUse, exit_code, report
from docmill.cli.help import HelpText
from docmill.cli.sources import STDIN

EXAMPLES = """\
Examples:
  docmill process invoices/                    turn documents into data
  docmill templates import invoice.yaml        store a template
  docmill prompts set InvoiceTotal ask.txt     store what a model is asked
  docmill jobs submit invoice document:42      start a job for one document
  docmill worker                               run what is due, until Ctrl-C
  docmill jobs list                            see how jobs stand
  docmill batch submit invoice --from list     start many, so many at a time
  docmill review next --claim                  check what the machine is unsure of
  docmill issues list                          see what people must look at
  docmill up                                   serve the API and run what is due
  docmill doctor                               see whether all is well

Every command takes --json, which prints JSON on stdout. Settings come from
docmill.yaml in this folder and from DOCMILL_* variables; state is kept in
DOCMILL_HOME (~/.docmill). Exit codes: 0 done, 1 something failed, 2 wrong use."""

ORDER = (
    *("process", "documents", "show", "export", "query", "eval", "learn", "templates", "prompts", "jobs", "batch"),
    *("up", "serve", "worker", "review", "issues", "webhooks", "callback", "ai", "init", "members", "keys", "audit"),
    *("config", "db", "doctor"),
)
"""Of the commands in the help: as a person comes to need them."""
_FILE_COMMANDS = ("process", "templates", "prompts", "callback")
_FILE_OPTIONS = ("--from", "--data-file")


@cache
def build() -> App:
    """The commands, with nothing heavy imported. Made once: groups are modules' own, and take each command once."""
    app = App(
        name="docmill",
        help="Documents in, reviewed data out: durable workflows from templates.",
        help_epilogue=EXAMPLES,
        help_format="plaintext",
        help_formatter=HelpText(),
        version=f"docmill {__version__}",
    )
    jobs.app.command(callbacks.list_callbacks, name="callbacks")
    review.app.command(review_deciding.approve, name="approve")
    review.app.command(review_deciding.reject, name="reject")
    review.app.command(review_care.sla, name="sla", usage="docmill review sla [OPTIONS] [TIME]")
    review.app.command(review_care.reviewers, name="reviewers")
    groups = (
        documents.app,
        templates.app,
        prompts.app,
        jobs.app,
        batches.app,
        issues.app,
        review.app,
        webhooks.app,
        ai.app,
        members.app,
        keys.app,
        audit.app,
        config.app,
        database.app,
    )
    for group in groups:
        group.help_epilogue = ""
        app.command(group)
    app.command(callbacks.callback, name="callback", help_epilogue="", usage="docmill callback [OPTIONS] [FILE]")
    app.command(export.export, name="export", help_epilogue="")
    app.command(query.query, name="query", help_epilogue="", usage="docmill query [OPTIONS] [SQL]")
    app.command(process.process, name="process", help_epilogue="", usage="docmill process [OPTIONS] PATHS...")
    app.command(showing.show, name="show", help_epilogue=showing.EXAMPLES)
    app.command(evaluating.evaluate, name="eval", help_epilogue=evaluating.EXAMPLES)
    app.command(learning.learn, name="learn", help_epilogue=learning.EXAMPLES)
    app.command(worker.run_worker, name="worker", help_epilogue="")
    app.command(serving.up, name="up", help_epilogue="")
    app.command(serving.serve, name="serve", help_epilogue="")
    app.command(members.init, name="init", help_epilogue=members.EXAMPLES, usage="docmill init [OPTIONS]")
    app.command(doctor.doctor, name="doctor", help_epilogue="")
    for place, name in enumerate(ORDER):
        app[name].sort_key = place
    app.register_install_completion_command(
        help="Install the completion of commands and options for this shell (bash, zsh, fish).", help_epilogue=""
    )
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line; never raises for what a person can mend."""
    for stream in (sys.stdout, sys.stderr):
        # Names and results may hold what the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    as_json = "--json" in _before_delimiter(arguments)
    try:
        code = _call(arguments, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader left. Python flushes stdout once more at exit: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        report(error, as_json=as_json)
        return exit_code(error)
    return code


def _call(arguments: Sequence[str], *, as_json: bool) -> int:
    app = build()
    app.suppress_keyboard_interrupt = False
    try:
        result = app(_with_stdin(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = " ".join(["docmill", *(error.command_chain or ())])
        message = " ".join(str(error).split())
        report(WrongUse(f"{message} See `{command} --help`."), as_json=as_json)
        return EXIT_WRONG_USE
    return result if isinstance(result, int) else 0


def _with_stdin(arguments: Sequence[str]) -> list[str]:
    """A lone dash that stands for a file becomes the name of stdin; the parser would take it for an option."""
    takes_files = bool(arguments) and arguments[0] in _FILE_COMMANDS
    before = ["", *arguments]
    return [
        STDIN if word == "-" and (takes_files or option in _FILE_OPTIONS) else word
        for option, word in zip(before, arguments, strict=False)
    ]


def _before_delimiter(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
