"""Every view has the same two functions, and what a program is called does not become markup in its Markdown."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from rich.text import Text

import unstall.report
from unstall.cli.main import VERBS
from unstall.report.layout import Page
from unstall.report.markdown import MarkdownPage

VIEWS = sorted(info.name for info in pkgutil.iter_modules(unstall.report.__path__) if info.name.endswith("_view"))
WITHOUT_VIEW = {"report": "run_view", "export": None, "prune": None, "mcp": None, "setup-agent": None}
"""Verbs that show what others do, or one line."""


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits_the_protocol(name):
    view = importlib.import_module(f"unstall.report.{name}")
    inspect.signature(view.page).bind("answer", 80)
    inspect.signature(view.markdown).bind("answer")


def test_each_verb_has_a_view_of_its_name():
    wanted = {WITHOUT_VIEW.get(verb, f"{verb.replace('-', '_')}_view") for verb in VERBS} - {None}
    assert wanted <= set(VIEWS)
    assert set(VIEWS) - wanted == {"trace_compare_view", "report_view"}


def test_no_other_module_is_called_like_one():
    files = {path.name for path in Path(unstall.report.__path__[0]).glob("*_view.py")}
    assert files == {f"{name}.py" for name in VIEWS}


def _fill(page: Page) -> Page:
    page.rule("unstall thing")
    page.paragraph("It is <b>fine</b>", "bold green", "✅")
    page.blank()
    page.field("Program", "a_b.py @everyone")
    page.phrases("Speed", ["3 steps/s", "fast"])
    page.bar("forward", 0.5, "50 %    1 s", 10, "blue")
    page.bullets("Why", ["one", "# two"], 2)
    page.table("Step", ("", "A"), [("x|y", "1"), (Text("z"), "2")])
    page.listing([("name", "yes", "because")], "lll")
    page.command("Do", "prove it:", "unstall run `x`")
    return page


def test_a_page_as_markdown():
    assert (
        _fill(MarkdownPage()).as_text()
        == """\
### unstall thing

✅ **It is &lt;b&gt;fine&lt;/b&gt;**

- Program: a\\_b.py @\u200beveryone
- Speed: 3 steps/s · fast
- forward: 50 % 1 s

**Why**

- one
- \\# two

| step | A |
| --- | --- |
| x\\|y | 1 |
| z | 2 |

|  |  |  |
| --- | --- | --- |
| name | yes | because |

- Do: prove it:

```sh
unstall run `x`
```
"""
    )


def test_the_same_page_on_a_terminal():
    text = _fill(Page(60)).as_text()
    assert "✅" not in text and "It is <b>fine</b>" in text
    assert all(len(line) <= 60 for line in text.splitlines())
