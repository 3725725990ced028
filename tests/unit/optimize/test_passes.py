"""One pass over a loader: seen by the loops around it, and only where all of them are seen."""

from __future__ import annotations

import pytest
from factory import Source

from unstall.optimize.passes import goes_through_once
from unstall.records.measurements import SeamSite

ONE = """
FIRST, EPOCHS = 3, 1
for epoch in range(EPOCHS):
    for batch in loader:  # ask
        step(batch)
"""


def once(tmp_path, text, *callers):
    code = Source(tmp_path / "train.py", text)
    above = tuple((code.file, name, code.line(snippet)) for name, snippet in callers)
    return goes_through_once([SeamSite("~data.iter", code.file, "f", code.line("# ask"), above)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE, True),
        (ONE.replace("3, 1", "3, 2"), False),
        (ONE.replace("range(EPOCHS)", "range(1)"), True),
        (ONE.replace("range(EPOCHS)", "range(args.epochs)"), False),
        (ONE.replace("for epoch in range(EPOCHS):", "while True:"), False),
        (ONE + "EPOCHS = 5\n", False),
        ("for batch in loader:  # ask\n    step(batch)\n", True),
        ("for batch in iter(\n    loader  # ask\n):\n    step(batch)\n", True),
        ("trainer.fit(loader)  # ask\n", False),
        ("x = [batch for batch in loader]  # ask\n", False),
        ("for batch in (  # ask\n", False),
    ],
)
def test_the_loops_around_say_how_often(tmp_path, text, expected):
    assert once(tmp_path, text) is expected


FUNCTION = """
def epoch(loader):
    for batch in loader:  # ask
        step(batch)

def main():
    epoch(a)  # alone
    while improves():
        epoch(b)  # again

main()  # start
"""


@pytest.mark.parametrize(("line", "expected"), [("# alone", True), ("# again", False)])
def test_a_loop_may_be_on_a_line_that_leads_there(tmp_path, line, expected):
    assert once(tmp_path, FUNCTION, ("main", line), ("<module>", "# start")) is expected


def test_nothing_is_known_without_a_site():
    assert not goes_through_once([])
