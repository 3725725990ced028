"""How much of a model's calls its frozen parts take that come before all that learns."""

from __future__ import annotations

import pytest
from spanfactory import Recording

from unstall.benchmark.frozen_parts import frozen_part
from unstall.child.layout import MODULE

NET, BODY, STAGE, HEAD, TAIL = 1, 2, 3, 4, 5
ROWS = {
    NET: ("", "Net", ""),
    BODY: ("body", "Body", "frozen"),
    STAGE: ("body.stage", "Stage", "frozen"),
    HEAD: ("head", "Linear", "learns"),
    TAIL: ("tail", "Linear", "frozen"),
}


def recorded(per="~optimizer", states=None, cycles=4, *, separate=False):
    """A body of which a stage is a part, then a head that learns, then a tail."""
    r = Recording()

    def call(address, seconds, *inside, root=False):
        with r.span("~forward", arg=address, flags=0 if root else MODULE):
            for function in inside:
                function()
            r.spend(seconds)

    def body(root=False):
        call(BODY, 0.01, lambda: call(STAGE, 0.05), root=root)

    marks = [r.t]
    for _ in range(cycles):
        if separate:
            body(root=True)
        rest = [lambda: call(HEAD, 0.02), lambda: call(TAIL, 0.01)]
        call(NET, 0.01, *([] if separate else [body]), *rest, root=True)
        r.spend(0.1)
        marks.append(r.t)
    rows = [
        {
            "id": address,
            "name": name,
            "type": kind,
            "file": "a.py",
            "line": 3,
            "state": (states or {}).get(address, state),
        }
        for address, (name, kind, state) in ROWS.items()
    ]
    r.emit_fact("modules", root=NET, modules=rows)
    r.emit_fact("window", what="modules", marks=marks, per=per)
    return r.process()


@pytest.mark.parametrize("separate", [False, True])
def test_the_outermost_part_is_named_with_its_share_of_the_calls(separate):
    part = frozen_part(recorded(separate=separate))
    assert (part.name, part.type, part.line) == ("body", "Body", 3)
    assert part.share == pytest.approx(0.06 / 0.1)


def test_what_comes_after_what_learns_is_no_feature_of_a_sample():
    part = frozen_part(recorded(states={BODY: "", STAGE: ""}))
    assert part is None


def test_a_part_that_learns_in_some_stage_is_frozen_in_the_others_alone():
    part = frozen_part(recorded(states={BODY: ""}))
    assert (part.name, part.share) == ("body.stage", pytest.approx(0.5))


@pytest.mark.parametrize("more", [{"per": "~forward"}, {"states": {HEAD: ""}}, {"cycles": 0}])
def test_without_training_there_is_none(more):
    assert frozen_part(recorded(**more)) is None


def test_without_a_look_there_is_none():
    assert frozen_part(Recording().process()) is None
