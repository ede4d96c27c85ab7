"""One process that asks a stand-in model through the gateway, for tests of what several processes share.

`ask <count>` asks as often as it is let in, `count` times at the most, one call after the other, and tells the witness
of each: `asked` when the model hears it, with the moment its token is good; `deferred` and `refused` when it is not let
in. A `deferred` one waits at the gate `round-<n>` for its nth round; `refused` ends the process. The stand-in answers
when the gate `answer` is open. Time is that of the file `clock` beside the witness's log.
"""

import asyncio
import os
import sys
from datetime import timedelta

from docmill.ai.gateway import Gateway
from docmill.bootstrap import model_rules, open_app
from docmill.db.database import Database
from docmill.model.ai import Answer, ModelCall, Request
from docmill.model.ai_errors import BudgetExceeded
from docmill.model.errors import Deferred
from docmill.plugin import Provider
from docmill.settings import Settings, load_settings
from docmill.testing.nursery import die_with_parent
from docmill.testing.shared_clock import SharedClock
from docmill.testing.waiting import until_true
from docmill.testing.witness import Witness

MODEL = "stand-in:model"
ANSWER_TOKENS = 1000


class Asker:
    """The process's gateway and what it tells the witness."""

    def __init__(self, database: Database, settings: Settings, witness: Witness) -> None:
        self.witness = witness
        self.clock = SharedClock(witness.directory / "clock")
        self._slot = 0.0
        provider = Provider(name="stand-in", function=self._answer, limited=True)
        self.gateway = Gateway(
            database, {"stand-in": provider}, model_rules(settings), clock=self.clock, wait=self._note_slot
        )

    async def _note_slot(self, seconds: float) -> None:
        """Nobody waits in a time that moves only when told to."""
        self._slot = seconds

    async def _answer(self, call: ModelCall) -> Answer:
        good_at = self.clock() + timedelta(seconds=self._slot)
        self._slot = 0.0
        self.witness.note("asked", call.model, good_at.isoformat(), synced=True)
        await self._gate("answer")
        return Answer(text="yes", input_tokens=0, output_tokens=ANSWER_TOKENS)

    async def _gate(self, name: str) -> None:
        await until_true(lambda: self.witness.is_open(name), interval=0.005)

    async def ask(self, count: int) -> None:
        """Until it has asked so often, or there is no budget left."""
        round_ = 0
        self.witness.note("ready")
        await self._gate("go")
        for _ in range(count):
            while True:
                try:
                    await self.gateway.generate(Request(prompt="well?", model=MODEL, max_tokens=ANSWER_TOKENS))
                except Deferred as refusal:
                    round_ += 1
                    self.witness.note("deferred", str(round_), str(refusal.delay))
                    await self._gate(f"round-{round_}")
                except BudgetExceeded as refusal:
                    self.witness.note("refused", detail=refusal.message)
                    return
                else:
                    self.witness.note("answered")
                    break


def main() -> None:
    """Ask as the arguments say."""
    die_with_parent(os.getppid())
    settings = load_settings()
    with open_app(settings) as app:
        asker = Asker(app.database, settings, Witness.of_environment())
        asyncio.run(asker.ask(int(sys.argv[2])))
        asker.gateway.close()


if __name__ == "__main__":
    main()
