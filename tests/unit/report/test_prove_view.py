"""What a proof looks like: terminal, Markdown, card; and that its JSON satisfies the schema."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest

from unstall.records.proof import Difference, Proof, ProofRatio, SideFigures
from unstall.records.run import RunInfo
from unstall.report import prove_card, prove_view, report_view
from unstall.report.schema import schema
from unstall.runs.prove import report_of

PROVEN = Proof(
    verdict="proven",
    reason="whole runs are 2.04 times as fast, and the results the same",
    changes="fix.patch on the working tree",
    sameness="exact",
    ratio=ProofRatio(value=2.04, low=1.83, high=2.27),
    known_by=["24 optimizer steps"],
    seconds=SideFigures(original=10.0, changed=5.0),
    memory_bytes=SideFigures(original=2e9, changed=1e9),
    break_even_steps=12,
    pairs=3,
)
DIFFERENT = Proof(
    verdict="different",
    reason="it does not do the same: <b>|: 1 instead of 2",
    changes="a..b",
    first_difference=Difference(kind="values", place="<b>|", detail="1 instead of 2"),
)


def make_report(proof):
    return report_of(
        proof,
        RunInfo(id="1", command=["train.py"], started="", duration_s=1.0, steps=0, exit_code=None, environment={}),
    )


@pytest.mark.parametrize("proof", [PROVEN, DIFFERENT])
def test_the_report_satisfies_the_schema_and_reads_back(proof):
    report = make_report(proof)
    jsonschema.validate(json.loads(report.to_json()), schema(), jsonschema.Draft202012Validator)
    assert type(report).from_json(report.to_json()).proof == proof


def test_the_headline_says_how_much_faster_and_how_the_same():
    text = report_view.page(make_report(PROVEN), 80).as_text()
    assert "proven: 2.04× (95 % between 1.83× and 2.27×) faster, exact" in text
    assert "after 12 steps" in text and max(map(len, text.splitlines())) <= 80


def test_more_memory_and_lines_that_no_run_reached_are_said_beside_the_verdict():
    dear = msgspec.structs.replace(
        PROVEN, memory_bytes=SideFigures(original=1e9, changed=3e9), unreached=["data.py:4-6"]
    )
    text = report_view.page(make_report(dear), 100).as_text()
    assert "it takes 3× the memory" in " ".join(text.split()) and "data.py:4-6: no run was seen to reach" in text
    assert "memory" not in prove_view.headline(PROVEN)


def test_more_of_the_cores_is_said_too():
    dear = msgspec.structs.replace(PROVEN, cpu_s=SideFigures(original=8.0, changed=12.0))
    assert prove_view.headline(dear).endswith("; it takes 1.5× the cores' time")
    assert ("cores", "8 s", "12 s") in [tuple(row) for row in prove_view.figures(dear)]
    assert "takes" not in prove_view.headline(
        msgspec.structs.replace(dear, cpu_s=SideFigures(original=8.0, changed=9.0))
    )


def test_strings_of_the_program_add_no_markup():
    assert "<b>" not in report_view.markdown(make_report(DIFFERENT))
    card = prove_card.render(DIFFERENT, ["train.py"])
    assert "1 instead of 2" in "".join(ElementTree.fromstring(card).itertext())


def test_a_card_needs_nothing_else():
    card = prove_card.render(PROVEN, ["train.py", "--lr", "1 & 2"])
    assert "href" not in card and "url(" not in card
    assert "10 s → 5 s" in "".join(ElementTree.fromstring(card).itertext())


def test_a_verdict_without_a_ratio_says_why():
    assert prove_view.headline(DIFFERENT).startswith("different: it does not do the same")
