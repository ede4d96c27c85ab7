"""docs/guides/colleagues.md: every command in it, one after another, on an installation that nobody has used."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx

from docmill.testing.papers import invoice_pdf
from tests.acceptance.mill import PATIENCE, Answer, Mill

GUIDE = (Path(__file__).parents[2] / "docs/guides/colleagues.md").read_text()
PASSWORD = "a long enough one"


def commands() -> Iterator[list[str]]:
    """What the guide tells people to type, without prompts, answers and remarks."""
    for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL):
        for line in re.sub(r"\\\n\s+", " ", block).splitlines():
            if line.startswith("$ "):
                yield shlex.split(line.removeprefix("$ "), comments=True)


class Reader:
    """Somebody who follows the guide: what is printed there as an example, they replace by what they got."""

    def __init__(self, mill: Mill, address: str, browser: httpx.Client) -> None:
        self._mill = mill
        self._names = {"$API": f"{address}/api/v1"}
        self._invitation = ""
        self._browser = browser
        self.answers: list[tuple[str, Answer | httpx.Response]] = []

    def types(self, words: list[str]) -> None:
        words = [self._meant(word) for word in words]
        match words:
            case ["docmill", "up"]:
                return
            case ["docmill", *rest]:
                answer = self._mill(*rest, given=f"{PASSWORD}\n")
                assert answer.code == 0, (words, answer)
                self._keep(answer.out)
                self.answers.append((" ".join(rest), answer))
            case ["curl", *rest]:
                self._curl(rest)
            case [given] if re.fullmatch(r"[A-Z]+=.*", given):
                assert given.partition("=")[0] in ("API", "ITEM")
            case _:
                raise AssertionError(f"nobody knows how to type {words}")

    def _meant(self, word: str) -> str:
        for name, value in self._names.items():
            word = word.replace(name, value)
        return word.replace("dmi_…", self._invitation)

    def _keep(self, printed: str) -> None:
        found = re.search(r"dmi_\S+", printed)
        self._invitation = found[0] if found else self._invitation

    def _curl(self, words: list[str]) -> None:
        given, rest = dict[str, list[str]](), iter(words)
        for word in rest:
            given.setdefault(word if word.startswith("-") else "url", []).append(
                next(rest) if word.startswith("-") else word
            )
        headers = dict(each.split(": ", 1) for each in given.get("-H", []))
        body = given["-d"][0] if "-d" in given else None
        method = given.get("-X", ["GET" if body is None else "POST"])[0]
        # A jar that is written begins empty; the client keeps it from then on.
        assert ("-c" in given) is not ("-b" in given)
        answer = self._browser.request(method, given["url"][0], headers=headers, content=body)
        assert answer.is_success, (words, answer.text)
        if given["url"][0].endswith("/review/next/claim"):
            self._names["$ITEM"] = answer.json()["id"]
        self.answers.append((f"{method} {given['url'][0].partition('/api/v1')[2]}", answer))


def test_a_colleague_comes_in_and_reviews_as_the_guide_says(bare: Mill) -> None:
    mill = bare.having(DOCMILL_PLUGINS="")
    invoice_pdf(2).write(mill.folder / "inbox")
    with mill.started("up", "--port", "0", "--json") as running, httpx.Client(timeout=PATIENCE) as browser:
        running.says('"ready"')
        reader = Reader(mill, json.loads(running.out.splitlines()[0])["address"], browser)
        for words in commands():
            reader.types(words)
    told = dict(reader.answers)
    listed = told["review list --status corrected"]
    assert isinstance(listed, Answer)
    assert "Bob" in listed.out
    asked = next(answer for words, answer in reader.answers if words.startswith("query"))
    assert isinstance(asked, Answer)
    assert asked.out.splitlines()[1].split()[-2:] == ["corrected", "INV-7"]
    assert (mill.folder / "books.csv").read_text().count("INV-7") == 1
    members = mill("members", "list", "--json").data["members"]
    assert [each["email"] for each in members] == ["ann@mill.example"]
    (item,) = mill("review", "list", "--status", "corrected", "--json").data["items"]
    assert item["decided_by_name"] == "Bob", "who has left is still called by their name"


def test_members_are_given_work_by_their_address(bare: Mill) -> None:
    mill = bare.having(DOCMILL_PLUGINS="")
    invoice_pdf(2).write(mill.folder)
    (file,) = [path.name for path in mill.folder.glob("*.pdf")]
    assert mill("process", file).code == 0
    assert mill("init", "--organisation", "Mill", "--email", "ann@mill.example").code == 0
    token = mill("members", "invite", "bob@mill.example", "--role", "reviewer", "--json").data["invitation"]["token"]
    bob = mill("members", "join", token, "--name", "Bob", "--json", given=f"{PASSWORD}\n").data["member"]["id"]
    assert mill("review", "reviewers").out == "bob@mill.example\n"
    assert "assigned to Bob" in mill("review", "assign", file, "bob@mill.example").out
    (given,) = mill("review", "list", "--assigned-to", "bob@mill.example", "--json").data["items"]
    assert given["assigned_to"] == bob
    assert "in_review by Bob" in mill("review", "claim", file, "--as", "bob@mill.example").out
    assert mill("review", "list", "--claimed-by", "bob@mill.example", "--json").data["items"][0]["claimed_by"] == bob
    stranger = mill("review", "assign", file, "eve@mill.example", "--json")
    assert (stranger.code, stranger.error["code"]) == (2, "not_found")
