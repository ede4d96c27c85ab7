"""How much of a model's rate four processes use together: the shared token bucket in real time.

Run as a module it is one of the processes: it asks a stand-in model that answers at once, from one moment of the wall
clock to another, and prints the moment of every call.
"""

import asyncio
import json
import subprocess
import sys
import time

from bench.measure import ROOT
from bench.processes import BenchError
from bench.results import Figure
from bench.servers import Servers
from docmill.ai.gateway import Gateway
from docmill.bootstrap import model_rules, open_app
from docmill.model.ai import Answer, ModelCall, Request
from docmill.model.errors import Deferred
from docmill.plugin import Provider
from docmill.settings import ModelSection, Settings, load_settings

RATE = 40.0
PROCESSES = 4
_ASKERS = 10
"""In each process, so that there is always somebody who wants the next token."""
_START_S = 6.0
_SECONDS = 10.0


def measure(running: Servers) -> Figure:
    """Calls made in a window, over those that the rate allows in it."""
    url = running.fresh_database("docmill_rates")
    with open_app(_settings(url), check_schema=False) as app:
        app.upgrade()
    begin = time.time() + _START_S
    command = [sys.executable, "-m", "bench.docmill.rates", url, str(begin), str(begin + _SECONDS)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(PROCESSES)
    ]
    moments: list[float] = []
    for process in processes:
        output, errors = process.communicate(timeout=_START_S + _SECONDS + 60)
        if process.returncode:
            raise BenchError(f"A process that asks a model ended with {process.returncode}: {errors.decode()[-500:]}")
        moments += json.loads(output)
    # The first second may still see a process start.
    window = sum(1 for moment in moments if begin + 1 <= moment < begin + _SECONDS)
    return Figure(key="model_rate_used", value=window / (RATE * (_SECONDS - 1)))


def _settings(url: str) -> Settings:
    return load_settings(database_url=url, ai=ModelSection(rate=RATE))


async def _ask(url: str, begin: float, end: float) -> list[float]:
    moments: list[float] = []

    async def answer(call: ModelCall) -> Answer:
        moments.append(time.time())
        return Answer(text="yes", input_tokens=0, output_tokens=1)

    settings = _settings(url)
    with open_app(settings) as app:
        provider = Provider(name="stand-in", function=answer, limited=True)
        gateway = Gateway(app.database, {"stand-in": provider}, model_rules(settings))

        async def asker() -> None:
            await asyncio.sleep(max(0.0, begin - time.time()))
            while time.time() < end:
                try:
                    await gateway.generate(Request(prompt="well?", model="stand-in:model", max_tokens=1))
                except Deferred as refusal:
                    await asyncio.sleep(min(refusal.delay, 0.5))

        await asyncio.gather(*(asker() for _ in range(_ASKERS)))
        gateway.close()
    return moments


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_ask(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))))
