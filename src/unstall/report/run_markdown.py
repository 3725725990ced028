"""The report as GitHub Markdown, for a comment on a pull request."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from unstall.records.report import Report
from unstall.report import promise, run_phrases, templating, wording
from unstall.report.markdown import escape, fenced
from unstall.report.templating import Markup
from unstall.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from jinja2 import Environment


def render(report: Report) -> str:
    """The verdict in view, the figures behind a fold; strings of the program cannot add markup."""
    document = (
        _environment()
        .get_template("report.md")
        .render(
            report=report,
            culprit=report.verdict.culprit,
            culprit_share=wording.culprit_share(report.verdict),
            phases=run_phrases.phases(report),
            promises=(("Ceiling", promise.ceiling_line(report)), ("Gain", promise.gain_line(report))),
            callbacks=run_phrases.callbacks(report),
            compiled=run_phrases.compiled(report),
            runner_up=wording.runner_up_line(report),
            next=wording.next_command(report),
            facts_of_run=(
                ("Step", run_phrases.step_times(report)),
                ("Speed", run_phrases.throughput(report)),
                ("Request", run_phrases.generation(report)),
                ("Machine", run_phrases.utilization(report)),
                ("Run", run_phrases.run(report)),
                ("Gaps", run_phrases.startup(report)),
            ),
            patch=_block(report.patch.rstrip("\n"), "diff") if report.patch else "",
        )
    )
    return f"{document}\n"


@cache
def _environment() -> Environment:
    environment = templating.environment(__package__, safe=lambda text: Markup(escape(text)))
    environment.filters["fenced"] = lambda line, language: _block(sanitize_line(line), language)
    return environment


def _block(code: str, language: str) -> Markup:
    return Markup("\n".join(fenced(code, language)))
