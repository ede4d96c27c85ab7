"""A whole story over HTTP alone: `docmill up`, and a client that knows an address and a token."""

import asyncio
import json
import os
import re
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from docmill.client import Client, Refused
from docmill.testing.papers import invoice_pdf
from docmill.testing.receiver import Receiver
from docmill.testing.waiting import until
from tests.acceptance.mill import PATIENCE, Mill, Running


@contextmanager
def up(mill: Mill, *command: str) -> Iterator[tuple[Client, Running, str]]:
    """The server, and a client of it."""
    with mill.started(*(command or ("up",)), "--port", "0", "--json") as running:
        running.says('"ready"')
        told = json.loads(running.out.splitlines()[0])
        token = Path(told["token_file"]).read_text().strip()
        with Client(told["address"], token, timeout=PATIENCE) as client:
            yield client, running, told["address"]


def test_from_upload_to_export_and_back_with_the_correction_still_there(either: Mill) -> None:
    paper = invoice_pdf(3)
    mill = either.having(DOCMILL_PLUGINS="", DOCMILL_WEBHOOKS__PRIVATE_ADDRESSES="true")
    with Receiver() as receiver, up(mill) as (docmill, _, _):
        wanted = {"url": receiver.url, "events": ["document.finished", "review.decided"]}
        secret = docmill.call("POST", "/webhooks", wanted)["secret"]
        uploaded = docmill.upload(paper.content, name=paper.name)
        document = docmill.finished(uploaded["id"], within=PATIENCE)
        assert document["status"] == "completed", document
        assert document["extraction"] is not None

        item = docmill.claim_next()
        assert item is not None
        assert item["document_id"] == document["id"]
        view = docmill.item(item["id"])
        number = next(field for field in view["fields"] if field["path"] == "invoice_number")
        assert number["evidence"]
        assert number["passed"]
        corrected = docmill.correct(item, "invoice_number", "HAND-7")
        with pytest.raises(Refused) as stale:
            docmill.correct(item, "invoice_number", "OLD")
        assert (stale.value.status, stale.value.code) == (412, "version_conflict")
        for name in view["missing"]:
            corrected = docmill.edit(corrected, "add", {"path": name, "value": "1"})
        decision = docmill.approve(corrected)
        assert decision["item"]["status"] == "corrected"
        for job_id in decision["job_ids"]:
            assert docmill.job_finished(job_id, within=PATIENCE)["job"]["status"] == "COMPLETED"

        told = {}
        for message in receiver.wait_for(2, PATIENCE):
            Webhook(secret).verify(message.body, dict(message.headers))
            told[message.told["type"]] = message.told["data"]
        assert told["document.finished"]["document_id"] == document["id"]
        assert (told["review.decided"]["item_id"], told["review.decided"]["status"]) == (item["id"], "corrected")

        rows = json.loads(docmill.export("json"))
        assert [row["invoice_number"] for row in rows] == ["HAND-7"]
        assert "HAND-7" in docmill.export("csv").decode()
        assert docmill.export("parquet").startswith(b"PAR1")

        job_id = docmill.reprocess(document["id"])
        assert docmill.job_finished(job_id, within=PATIENCE)["job"]["status"] == "COMPLETED"
        again = docmill.item(document["id"])
        number = next(field for field in again["fields"] if field["path"] == "invoice_number")
        assert (number["value"], number["locked"], number["differs"]) == ("HAND-7", True, True)
        assert json.loads(docmill.export("json"))[0]["invoice_number"] == "HAND-7"

        deeds = [entry["action"] for entry in docmill.call("GET", "/audit")["items"]]
        assert {"review.claim", "review.correct", "review.approve"} <= set(deeds)
        verified = docmill.call("GET", "/audit/verify")
        assert verified["sound"]
        assert verified["entries"] == len(docmill.send("GET", "/audit/export").text.splitlines()) >= 3

        # The correction and the words on the paper both lead to it, as soon as a worker has stored them.
        until(lambda: docmill.search("hand-7"), PATIENCE, what="the words")
        assert [found["id"] for found in docmill.search("hand-7")] == [document["id"]]
        image = docmill.send("GET", f"/documents/{document['id']}/pages/1/image", query={"max_side": 200})
        assert image.content.startswith(b"\x89PNG")
        words = docmill.call("GET", f"/documents/{document['id']}/words", query={"page": 1})
        assert any(word["text"] for line in words[0]["lines"] for word in line)
        original = docmill.send("GET", f"/documents/{document['id']}/download")
        assert original.content == paper.content
        linked = docmill.call("POST", f"/documents/{document['id']}/link")["url"]
        assert httpx.get(linked).content == paper.content


def test_no_folder_of_the_server_is_shown_to_whoever_may_see_jobs(bare: Mill, tmp_path: Path) -> None:
    mill, elsewhere = bare.having(DOCMILL_PLUGINS=""), tmp_path / "elsewhere"
    paper = invoice_pdf(4)
    (tmp_path / paper.name).write_bytes(paper.content)
    assert mill("process", str(tmp_path / paper.name), "--out", str(elsewhere)).code == 0
    with up(mill) as (docmill, _, _):
        uploaded = docmill.finished(docmill.upload(invoice_pdf(3).content, name="a.pdf")["id"], within=PATIENCE)
        about = {"template": "document-processing", "entities": [f"document:{uploaded['id']}"]}
        batch = docmill.call("POST", "/batches", about)["id"]
        until(lambda: docmill.call("GET", f"/batches/{batch}")["finished"] == 1, PATIENCE, what="the batch")
        asked = [f"/batches/{batch}/results?step=save", "/jobs"]
        for job in docmill.call("GET", "/jobs")["items"]:
            asked += [f"/jobs/{job['id']}", f"/jobs/{job['id']}/steps/save", f"/jobs/{job['id']}/events"]
        assert len(asked) == 11
        for path in asked:
            assert str(tmp_path) not in docmill.send("GET", path).text, path
        shown = [docmill.call("GET", path)["result"]["outputs"][0] for path in asked if path.endswith("/steps/save")]
        files = [*elsewhere.rglob("*.json"), *Path(mill.environment["DOCMILL_HOME"], "outputs").rglob("*.json")]
        assert {Path(path).name for path in shown} == {file.name for file in files}
        assert all(path.startswith("json/") for path in shown)
        # On the machine itself they are of use.
        told = mill("jobs", "show", job["id"], "--json").data["job"]
        saved = next(step for step in told["steps"] if step["step_key"] == "save")
        assert saved["result"]["outputs"][0] == str(next(elsewhere.rglob("*.json")))


def test_the_token_is_its_owners_alone_and_only_this_machine_is_listened_to(bare: Mill) -> None:
    with up(bare) as (docmill, running, address):
        file = Path(bare.environment["DOCMILL_HOME"], "api-token")
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert address.startswith("http://127.0.0.1:")
        assert docmill.call("GET", "/me")["role"] == "owner"
        running.signal(signal.SIGTERM)
        assert running.end().code == 0


def test_served_alone_the_work_is_left_to_workers(either: Mill, worker: Callable[[Mill], Running]) -> None:
    with up(either, "serve") as (docmill, running, _):
        body = {"template": "plain", "entity": "document:7"}
        job = docmill.call("POST", "/jobs", body)
        assert job["job"]["status"] == "PENDING"
        worker(either)
        assert docmill.job_finished(job["job"]["id"], within=PATIENCE)["job"]["status"] == "COMPLETED"
        running.signal(signal.SIGTERM)
        assert running.end().code == 0


def test_a_stream_of_events_ends_with_the_server_and_goes_on_with_the_next(either: Mill) -> None:
    body = {"template": "plain", "entity": "document:7"}
    with up(either) as (docmill, running, _):
        job_id = docmill.call("POST", "/jobs", body)["job"]["id"]
        docmill.job_finished(job_id, within=PATIENCE)
        seen = []
        for event in docmill.events(after=f"1-{job_id}-0", job_id=job_id):
            seen.append(event)
            if len(seen) == 2:
                break
        running.signal(signal.SIGTERM)
        assert running.end().code == 0
    with up(either) as (docmill, _, _):
        whole = docmill.call("GET", f"/jobs/{job_id}/events")["items"]
        told = {event["version"] for event in seen}
        for event in docmill.events(after=seen[-1]["id"], job_id=job_id):
            told.add(event["version"])
            if len(told) == len(whole):
                break
        assert told == {event["version"] for event in whole}


ASKING = """
name: asking
processable_type: document
steps:
  - step_key: guess
    type: ai.generate
    prompt: Guess
    model_config: {model: "quarrel:cheap"}
    output_schema: {type: object, properties: {total: {type: string}}, required: [total]}
  - {step_key: finish, type: FinishProcessing}
"""
PRICES = json.dumps({"quarrel:cheap": {"input": 1, "output": 1}, "quarrel:dear": {"input": 10, "output": 10}})


def test_one_step_once_more_by_another_model_shows_what_differs_and_what_it_cost(either: Mill) -> None:
    mill = either.having(DOCMILL_PLUGINS="quarrelling_models", DOCMILL_AI__PRICES=PRICES)
    with up(mill) as (docmill, _, _):
        docmill.call("PUT", "/prompts/Guess", {"text": "How much?"}, headers={"If-Match": "*"})
        docmill.put_template("asking", ASKING)
        job_id = docmill.call("POST", "/jobs", {"template": "asking", "entity": "document:7"})["job"]["id"]
        assert docmill.job_finished(job_id, within=PATIENCE)["job"]["status"] == "COMPLETED"
        with pytest.raises(Refused) as refused:
            docmill.call("POST", f"/jobs/{job_id}/steps/finish/rerun", {"model": "quarrel:dear"})
        assert refused.value.status == 422
        with pytest.raises(Refused) as refused:
            docmill.call("POST", f"/jobs/{job_id}/steps/guess/rerun", {"model": "nobody:knows"})
        assert refused.value.errors[0]["field"] == "body.model"
        docmill.call("POST", f"/jobs/{job_id}/steps/guess/rerun", {"model": "quarrel:dear"})
        docmill.job_finished(job_id, within=PATIENCE)
        compared = docmill.call("GET", f"/jobs/{job_id}/steps/guess/comparison")
        assert compared["differences"] == [{"path": "total", "before": "1", "after": "2"}]
        assert (compared["before"]["model"], compared["after"]["model"]) == ("quarrel:cheap", "quarrel:dear")
        assert compared["after"]["cost_nanos"] == 10 * compared["before"]["cost_nanos"] > 0


def test_a_document_that_no_model_has_seen_is_shown_to_one(either: Mill) -> None:
    paper = invoice_pdf(3)
    # Another word that stands on the page, so that it can be believed.
    said = json.dumps({"buyer_name": paper.fields["seller_name"]})
    plugins = {"DOCMILL_PLUGINS": "quarrelling_models", "DOCMILL_AI__PRICES": PRICES, "QUARREL_SAYS": said}
    mill = either.having(**plugins)
    with up(mill) as (docmill, _, _):
        document = docmill.finished(docmill.upload(paper.content, name="a.pdf")["id"], within=PATIENCE)
        job_id = document["job_id"]
        docmill.call("POST", f"/jobs/{job_id}/steps/ask/rerun", {"model": "quarrel:dear"})
        assert docmill.job_finished(str(job_id), within=PATIENCE)["job"]["status"] == "COMPLETED"
        compared = docmill.call("GET", f"/jobs/{job_id}/steps/ask/comparison")
        assert compared["differences"], json.dumps(compared)
        assert compared["before"]["cost_nanos"] == 0 < compared["after"]["cost_nanos"]
        assert docmill.call("GET", f"/documents/{document['id']}")["model"] == "quarrel:dear"


def _highest(pid: int) -> int:
    """Megabytes of memory that a process has had at most."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", told)[1]) >> 10  # type: ignore[index]


async def _upload_at_once(address: str, token: str, numbers: range) -> list[int]:
    limits, headers = httpx.Limits(max_connections=len(numbers)), {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=PATIENCE, limits=limits) as client:

        async def upload(number: int) -> int:
            content = b"%PDF-1.7\n" + number.to_bytes(8, "big") + bytes(1 << 18)
            return (await client.post("/api/v1/documents", files={"file": (f"{number}.pdf", content)})).status_code

        return list(await asyncio.gather(*map(upload, numbers)))


def test_many_uploads_at_once_take_hardly_more_memory_than_a_few(bare: Mill) -> None:
    many = bare.having(DOCMILL_API__RATE="100000", DOCMILL_API__BURST="100000")
    with up(many, "serve") as (_, running, address):
        token = Path(many.environment["DOCMILL_HOME"], "api-token").read_text().strip()
        assert set(asyncio.run(_upload_at_once(address, token, range(40)))) == {201}
        before = _highest(running.process.pid)
        assert set(asyncio.run(_upload_at_once(address, token, range(40, 540)))) == {201}
        # Were what comes first of each held, it would be more than sixty.
        grown = _highest(running.process.pid) - before
        assert grown < 40
