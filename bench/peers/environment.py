"""A virtual environment per peer under `.bench/venv`, made on first use from pinned requirements."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench.processes import BenchError

_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
_TIMEOUT_S = 600


def python_of(home: Path, peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return home / "venv" / peer / "bin" / "python"


def ensure(home: Path, peer: str) -> None:
    """Make the environment unless it is there and made from the same requirements."""
    requirements = _REQUIREMENTS / f"{peer}.txt"
    folder = home / "venv" / peer
    stamp = folder / "docmill-bench.stamp"
    wanted = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"Setting up {peer} …", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python_of(home, peer)), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, "--requirement", str(requirements)])
    stamp.write_text(wanted)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
