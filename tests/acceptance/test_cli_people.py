"""Founding, members, keys and the audit log through the real executable, on both databases."""

import json

from tests.acceptance.mill import TEMPLATES, Mill

PASSWORD = "correct horse battery"


def founded(mill: Mill) -> dict[str, dict[str, str]]:
    answer: dict[str, dict[str, str]] = mill(
        "init", "--organisation", "Mill & Sons", "--email", "Ann@mill.example", "--json"
    ).data
    return answer


def test_the_first_owner_gets_in_by_what_is_printed_once(either: Mill) -> None:
    way = founded(either)
    assert (way["organisation"]["name"], way["owner"]["email"]) == ("Mill & Sons", "ann@mill.example")
    assert way["invitation"]["token"].startswith("dmi_")
    assert way["key"]["token"].startswith("dmk_")
    joined = either("members", "join", way["invitation"]["token"], "--name", "Ann", given=PASSWORD + "\n")
    assert (joined.code, joined.out) == (0, "Welcome, Ann: you are owner now.\n")
    again = either("members", "join", way["invitation"]["token"], "--json", given=PASSWORD + "\n")
    assert (again.code, again.error["code"]) == (1, "invitation_invalid")
    second = either("init", "--organisation", "Again", "--email", "eve@mill.example", "--json")
    assert (second.code, second.error["code"]) == (1, "conflict")
    assert "docmill members invite" in second.error["message"]


def test_members_come_change_and_go(either: Mill) -> None:
    founded(either)
    token = either("members", "invite", "bob@mill.example", "--role", "reviewer").out.strip()
    listed = either("members", "list", "--json").data
    assert [each["email"] for each in listed["members"]] == ["ann@mill.example"]
    assert {each["email"] for each in listed["invitations"]} >= {"bob@mill.example"}
    assert token not in json.dumps(listed)
    assert either("members", "join", token, given=PASSWORD).code == 0
    assert "bob@mill.example" in either("members", "list").out
    (reviewer,) = either("review", "reviewers", "--json").data["reviewers"]
    assert either("members", "role", "bob@mill.example", "admin").out == "bob@mill.example is admin now.\n"
    assert either("review", "reviewers", "--json").data["reviewers"] == []
    removed = either("members", "remove", "bob@mill.example", "--json").data["removed"]
    assert (removed["id"], removed["role"]) == (reviewer, "admin")
    last = either("members", "remove", "ann@mill.example", "--json")
    assert (last.code, last.error["code"]) == (1, "conflict")
    nobody = either("members", "role", "eve@mill.example", "viewer", "--json")
    assert (nobody.code, nobody.error["code"]) == (2, "not_found")
    wrong = either("members", "invite", "nobody", "--json")
    assert (wrong.code, wrong.error["code"]) == (2, "invalid_input")


def test_a_forgotten_password_is_chosen_anew(mill: Mill) -> None:
    way = founded(mill)
    assert mill("members", "join", way["invitation"]["token"], given=PASSWORD).code == 0
    token = mill("members", "reset", "ann@mill.example").out.strip()
    short = mill("members", "join", token, "--json", given="short\n")
    assert (short.code, short.error["code"]) == (2, "invalid_input")
    assert mill("members", "join", token, given="another long one\n").code == 0


def test_keys_are_shown_once_listed_by_hint_and_revoked(either: Mill) -> None:
    founded(either)
    made = either("keys", "create", "uploader", "--scope", "documents.write", "--expires", "90d")
    token = made.out.strip()
    assert "documents.write" in made.err
    listed = either("keys", "list", "--json").data["keys"]
    assert {each["name"]: each["scopes"] for each in listed}["uploader"] == ["documents.write"]
    assert token not in either("keys", "list").out
    assert token[:10] in either("keys", "list").out
    assert either("keys", "revoke", "uploader").code == 0
    assert "revoked" in either("keys", "list").out
    wrong = either("keys", "create", "x", "--scope", "documents.burn", "--json")
    assert (wrong.code, wrong.error["code"]) == (2, "invalid_input")
    unknown = either("keys", "revoke", "nothing", "--json")
    assert (unknown.code, unknown.error["code"]) == (2, "not_found")


def test_what_was_done_is_listed_verified_and_exported(either: Mill) -> None:
    founded(either)
    either("members", "invite", "bob@mill.example")
    entries = either("audit", "list", "--limit", "3", "--json").data["entries"]
    assert [each["action"] for each in entries] == ["member.invite", "key.create", "organisation.found"]
    assert "member.invite" in either("audit", "list", "--action", "member.invite").out
    count = entries[0]["number"]
    verified = either("audit", "verify")
    assert (verified.code, verified.err) == (0, f"{count} entries, no faults.\n")
    lines = either("audit", "export").out.splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, count + 1))


def test_a_log_that_was_tampered_with_is_told(mill: Mill) -> None:
    import sqlite3

    founded(mill)
    with sqlite3.connect(mill.folder / "home" / "docmill.db") as database:
        database.execute("drop trigger audit_log_no_update")
        database.execute("update audit_log set actor_name = 'nobody' where number = 1")
    database.close()
    told = mill("audit", "verify", "--json")
    assert told.code == 1
    assert [each["number"] for each in told.data["faults"]] == [1]


def test_organisations_side_by_side_see_their_own(either: Mill) -> None:
    founded(either)
    other = either("init", "--another", "--organisation", "Others", "--email", "theo@others.example", "--json")
    assert other.code == 0
    there = either("members", "list", "--organisation", "others", "--json").data
    assert [each["email"] for each in there["members"]] == ["theo@others.example"]
    here = either("members", "list", "--json").data
    assert [each["email"] for each in here["members"]] == ["ann@mill.example"]
    assert len(either("audit", "list", "--organisation", "Others", "--json").data["entries"]) == 2
    unknown = either("keys", "list", "--organisation", "Nobody", "--json")
    assert (unknown.code, unknown.error["code"]) == (2, "not_found")


def test_without_init_nothing_is_different(mill: Mill) -> None:
    assert mill("members", "list").err == "Nobody yet. `docmill init` makes the first owner.\n"
    assert mill("audit", "verify").err == f"{len(TEMPLATES)} entries, no faults.\n"
    submitted = mill("jobs", "submit", "plain", "document:1", "--json")
    assert submitted.code == 0


def test_before_init_nobody_is_let_in_and_told_why(either: Mill) -> None:
    for words in (["keys", "create", "robot"], ["members", "invite", "bob@mill.example"]):
        answer = either(*words)
        assert answer.code == 1
        assert "docmill init" in answer.err, answer
