"""Settings are checked as a whole before they are used, and it can be seen what holds."""

from tests.acceptance.mill import Mill


def test_settings_without_mistakes_are_said_to_be_well(bare: Mill) -> None:
    bare.write("docmill.yaml", "fields: {invoice: {total: {threshold: 0.9}}}\n")
    answer = bare("config", "check")
    assert answer.code == 0
    assert "invoice, receipt" in answer.out


def test_every_mistake_of_settings_and_schemas_is_listed(bare: Mill) -> None:
    (bare.folder / "mine").mkdir()
    bare.write("mine/parcel.yaml", "fields:\n  weight: {type: numbr}\n  code: {type: text, pattern: '('}\n")
    bare.write(
        "docmill.yaml",
        "schemas: [mine, gone]\nfields: {invoice: {totel: {required: true}}, bill: {total: {required: true}}}\n"
        "validation: {rules: {lines_ad_up: false}}\n",
    )
    answer = bare("config", "check")
    assert answer.code == 2
    told = answer.out
    for part in ("parcel.yaml: line 2", "parcel.yaml: line 3", "'gone' is no folder", "fields.invoice.totel"):
        assert part in told
    assert "fields.bill: there is no such schema" in told
    assert "Did you mean lines_add_up?" in told
    assert len(bare("config", "check", "--json").data["mistakes"]) == len(told.splitlines())


def test_what_the_settings_name_and_nobody_has_is_a_mistake(bare: Mill) -> None:
    bare = bare.having(DOCMILL_PLUGINS=None)
    bare.write("docmill.yaml", "database_url: mysql://db/x\nplugins: [no_such_plugin]\n")
    first, second = bare("config", "check").out.splitlines()
    assert first.startswith("docmill.yaml:1: database_url: Database URLs start with sqlite:/// or postgresql://")
    assert second.startswith("docmill.yaml:2: plugins: The plug-in module 'no_such_plugin' cannot be imported")
    bare.write("docmill.yaml", "ai:\n  model: nosuch:model\n  models:\n    fast: slow\n    good: local:echo\n")
    first, second = bare("config", "check").out.splitlines()
    assert first.startswith("docmill.yaml:2: ai.model: there is no provider 'nosuch'. There are: anthropic,")
    assert second.startswith("docmill.yaml:4: ai.models.fast: Nobody knows whose model")


def test_plugins_beside_the_file_are_found_and_a_key_that_is_elsewhere_is_no_mistake(bare: Mill) -> None:
    bare = bare.having(DOCMILL_PLUGINS=None)
    bare.write("beside.py", "")
    bare.write("docmill.yaml", "plugins: [beside]\nai: {model: 'google:gemini-2.5-flash'}\n")
    assert bare("config", "check").code == 0


def test_another_file_can_be_checked(bare: Mill) -> None:
    bare.write("other.yaml", "leese: {}\noutput: {json_path: '../{id}'}\n- 1\n")
    assert bare("config", "check", "other.yaml").code == 2
    bare.write("other.yaml", "leese: {}\noutput: {json_path: '../{id}'}\n")
    answer = bare("config", "check", "other.yaml", "--json")
    assert answer.code == 2
    assert len(answer.data["mistakes"]) == 2
    assert bare("config", "check", "none.yaml").code == 2


def test_where_the_yaml_ends_to_be_yaml_is_pointed_at(bare: Mill) -> None:
    bare.write("docmill.yaml", "review:\n  auto_approve: true\n sla: 4h\n")
    place, *shown = bare("config", "check").out.splitlines()
    assert "docmill.yaml" in place
    assert "line 3, column 2" in place
    assert shown == ["   sla: 4h", "   ^"]


def test_what_holds_is_shown_with_where_it_comes_from(bare: Mill) -> None:
    bare.write("docmill.yaml", "database_url: 'postgresql://me:hidden@db/x'\n")
    mill = bare.having(DOCMILL_OUTPUT__ATOMIC="false")
    shown = mill("config", "show").out
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert lines["output.atomic"] == ["false", "DOCMILL_OUTPUT__ATOMIC"]
    assert lines["database_url"] == ["postgresql://me:********@db/x", "docmill.yaml"]
    assert lines["lease.duration"] == ["30.0", "default"]
    listed = mill("config", "show", "--json").data["settings"]
    changed = [one for one in listed if one["origin"] != "default"]
    assert {"database_url", "output.atomic"} <= {one["name"] for one in changed}
    assert mill("config", "show", "--changed", "--json").data["settings"] == changed
    assert "hidden" not in shown


def test_lengths_of_time_are_told_as_they_are_written(bare: Mill) -> None:
    bare.write("docmill.yaml", "idempotency: {cache_ttl: 31d}\nreview: {claim_for: 90}\nsessions: {idle: 36h}\n")
    shown = bare("config", "show", "--changed", "--json").data["settings"]
    assert {one["name"]: one["value"] for one in shown if one["origin"] == "file"} == {
        "idempotency.cache_ttl": "31d",
        "review.claim_for": "90s",
        "sessions.idle": "36h",
    }
    bare.write("docmill.yaml", "idempotency: {cache_ttl: 0}\nreview: {claim_for: 40d}\n")
    told = bare("config", "check").out
    assert "idempotency.cache_ttl: 0 is out of range; write more than 0s." in told
    assert "review.claim_for: '40d' is out of range; write at most 30d." in told


def test_a_mistake_in_a_variable_is_told_with_the_variable(bare: Mill) -> None:
    bare.write("docmill.yaml", "output: {atomic: true, formats: json}\n")
    wrong = bare.having(DOCMILL_OUTPUT__ATOMIK="false", DOCMILL_OUTPUT__FORMATS="xml")
    told = wrong("config", "check").out
    assert "DOCMILL_OUTPUT__ATOMIK: output.atomik: there is no such setting. Did you mean output.atomic?" in told
    assert "DOCMILL_OUTPUT__FORMATS: output.formats.0: 'xml' is not known here" in told


def test_mistakes_that_show_only_later_are_listed_with_the_others_each_with_its_line(bare: Mill) -> None:
    bare.write(
        "docmill.yaml",
        "lease: {durration: 3}\n"
        "output: {formats: json,xml}\n"
        "schemas: [nowhere]\n"
        "fields:\n"
        "  invoice:\n"
        "    totl: {required: true}\n"
        "    total: {threshold: 7}\n"
        "validation: {rules: {lines_ad_up: false}}\n",
    )
    told = bare("config", "check").out
    for line, part in (
        (1, "lease.durration"),
        (2, "output.xml"),
        (3, "schemas"),
        (6, "fields.invoice.totl"),
        (7, "fields.invoice.total.threshold"),
        (8, "validation.rules.lines_ad_up"),
    ):
        assert f"docmill.yaml:{line}: {part}: " in told
    assert "quote that" in told


def test_a_model_that_cannot_be_asked_from_here_is_noted_and_no_mistake(bare: Mill) -> None:
    bare.write("docmill.yaml", "ai: {model: 'google:gemini-2.5-flash'}\n")
    without_key = bare.having(GOOGLE_API_KEY="", GEMINI_API_KEY="")
    answer = without_key("config", "check")
    assert answer.code == 0
    assert "note: ai.model: " in answer.err
    assert "GEMINI_API_KEY" in answer.err
    assert len(without_key("config", "check", "--json").data["notes"]) == 1
    assert bare.having(GEMINI_API_KEY="secret")("config", "check", "--json").data["notes"] == []
