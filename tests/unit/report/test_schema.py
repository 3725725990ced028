from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from report_examples import EXAMPLES
from report_strategies import reports

from unstall.records import report as r
from unstall.records.vocabulary import Confidence, KnownBy
from unstall.report import schema as schema_module
from unstall.report.schema import schema


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["schema"]["const"] == r.SCHEMA


def test_no_key_is_said_twice() -> None:
    """JSON readers take the last one, and say nothing."""

    def as_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), keys
        return dict(pairs)

    json.loads(Path(schema_module.__file__).with_name("report.schema.json").read_text(), object_pairs_hook=as_dict)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(report=reports)
def test_every_report_satisfies_it_and_reads_back(validator: jsonschema.Draft202012Validator, report: r.Report) -> None:
    data = report.to_json()
    validator.validate(json.loads(data))
    assert r.Report.from_json(data) == report


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "hostile"])
def test_the_examples_satisfy_it(
    validator: jsonschema.Draft202012Validator, name: str, request: pytest.FixtureRequest
) -> None:
    report = request.getfixturevalue(name)  # the hostile one holds what JSON cannot
    validator.validate(json.loads(report.to_json()))


def test_the_records_and_the_schema_agree_on_names() -> None:
    finding = schema()["$defs"]["finding"]["properties"]
    assert finding["confidence"]["enum"] == list(Confidence.__args__)
    assert finding["headroom_known_by"]["enum"] == list(KnownBy.__args__)
