from __future__ import annotations

import msgspec
import pytest

from unstall.records import report as r
from unstall.report import report_view


@pytest.mark.parametrize(
    ("kind", "title"), [("run", "unstall run"), ("simplify", "unstall simplify"), ("optimize", "unstall optimize")]
)
def test_a_report_is_shown_as_by_the_verb_that_made_it(input_bound: r.Report, kind: str, title: str) -> None:
    report = msgspec.structs.replace(input_bound, kind=kind)
    assert title in report_view.page(report).as_text()
    assert report_view.markdown(report)


def test_a_report_that_calls_itself_a_trace_and_holds_none(input_bound: r.Report) -> None:
    report = msgspec.structs.replace(input_bound, kind="trace", trace=None)
    assert report_view.page(report).as_text()
