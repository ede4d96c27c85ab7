"""A fresh installation for the demo: a folder, settings, prompts, the template and the tables of its plug-in."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from sqlalchemy import text

from docmill.bootstrap import App
from docmill.demo import steps
from docmill.demo.fleet import Address
from docmill.model.errors import DocmillError
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import CompiledTemplate, compile_template

PLUGINS = ("docmill.demo.steps", "docmill.demo.model")
MODEL_SLOTS = 6
_SETTINGS = """\
plugins: [{plugins}]
pools:
  # Model calls at once in each worker; claimed two by two, so that all workers get some.
  ai: {{capacity: {slots}, claims_per_cycle: 2}}
ai:
  provider: standin
  rate: 50
  burst: 20
  prices:    # US dollars for a million tokens
    standin:swift-1: {{input: 3, output: 15}}
    standin:careful-2: {{input: 15, output: 75}}
executors:
  office: {{url: "{url}", secret: {secret}}}
"""


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """The home of the installation; it goes with the demo unless it is to be kept."""
    home = keep.resolve() if keep else Path(tempfile.mkdtemp(prefix="docmill-demo-"))
    try:
        home.mkdir(parents=True, exist_ok=True)
        if any(home.iterdir()):
            raise DocmillError(f"The folder {home} is not empty; name one that is, or one that does not exist yet.")
        # The demo is the same for everybody: nobody's own settings reach it.
        for name in [name for name in os.environ if name.startswith("DOCMILL_")]:
            del os.environ[name]
        os.environ |= {"DOCMILL_HOME": str(home), "DOCMILL_CONFIG": str(home / "docmill.yaml")}
        yield home
    finally:
        if keep is None:
            shutil.rmtree(home, ignore_errors=True)


def write_settings(home: Path, office: Address) -> None:
    """The settings file, read by every process of the demo."""
    content = _SETTINGS.format(plugins=", ".join(PLUGINS), slots=MODEL_SLOTS, url=office.url, secret=office.secret)
    (home / "docmill.yaml").write_text(content)


def store_prompts(app: App) -> None:
    """What `docmill prompts import` would do with the files."""
    for file in files("docmill.demo").joinpath("prompts").iterdir():
        app.prompts.put(file.name.removesuffix(".txt"), file.read_text())


def compiled_template(catalogue: Catalogue) -> CompiledTemplate:
    """The demo's template, checked against what is installed and stored."""
    name = "transaction.yaml"
    return compile_template(files("docmill.demo").joinpath(name).read_text(), catalogue=catalogue, source=name)


def fill(app: App, papers: Mapping[str, Path]) -> None:
    """The plug-in's tables, and a transaction for every paper."""
    with app.database.write() as connection:
        for table in steps.TABLES:
            connection.execute(text(table))
        rows = [{"id": name, "path": str(path)} for name, path in papers.items()]
        connection.execute(text("insert into demo_transactions (id, path) values (:id, :path)"), rows)
