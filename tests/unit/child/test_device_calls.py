"""Which lines of a loop copy to a device or wait for one."""

from __future__ import annotations

import pytest

from unstall.child.device_calls import DeviceCalls, is_one

torch = pytest.importorskip("torch")

MAIN, OTHER = (("a.py", "main", 3, 1),), (("a.py", "metrics", 9, 8),)
ON_HOST = torch.zeros(100)
ON_DEVICE = torch.zeros(100, device="meta")


def told(*calls):
    device = DeviceCalls()
    for call in calls:
        device.called(*call)
    facts = []
    device.tell(lambda kind, **fact: facts.append((kind, fact["name"], fact["stack"])))
    again = []
    device.tell(lambda kind, **fact: again.append(kind))
    assert again == []
    return facts


def test_copies_are_told_by_their_bytes():
    small = torch.zeros(2)
    found = told(
        ("~transfer.to", small, "cuda", OTHER),
        ("~transfer.to", small, "cuda", OTHER),
        ("~transfer.to", ON_HOST, "cuda", MAIN),
    )
    assert found == [("site", "~transfer.to", MAIN), ("site", "~transfer.to", OTHER)]


def test_waits_are_told_by_their_number():
    found = told(
        ("~sync.synchronize", None, None, MAIN),
        *[("~sync.item", ON_DEVICE, None, OTHER)] * 3,
    )
    assert found == [("site", "~sync.item", OTHER), ("site", "~sync.synchronize", MAIN)]


@pytest.mark.parametrize(
    "call",
    [
        ("~transfer.to", ON_HOST, torch.float16, MAIN),
        ("~transfer.to", ON_DEVICE, "cuda", MAIN),
        ("~transfer.to", torch.nn.Linear(2, 2), "cuda", MAIN),
        ("~sync.item", ON_HOST, None, MAIN),
    ],
)
def test_what_the_host_does_alone_is_not_told(call):
    assert told(call) == []


def test_which_events_these_are():
    assert is_one("~transfer.cuda") and is_one("~sync.item")
    assert not is_one("~forward") and not is_one("~device.wait")
