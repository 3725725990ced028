"""The screen of `unstall optimize`."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from unstall.records.report import Remedy
from unstall.records.report import RemedyStatus as Status
from unstall.report import remedies


def shown(report, interval=None, remarks=()):
    console = Console(file=io.StringIO(), width=100, color_system=None)
    remedies.render(report, interval, remarks, console)
    return console.file.getvalue()


def remedy(name, status, *, exactness="exact", **given):
    return Remedy(name=name, exactness=exactness, kept=status is Status.KEPT, status=status, **given)


def test_what_was_kept_comes_first_and_reasons_follow(input_bound):
    tried = [
        remedy("threads: 1", Status.SLOWER, exactness="close", speedup=0.9, ci95=(0.8, 1.0), why_not="no gain"),
        remedy("cache: it", Status.KEPT, speedup=3.0, ci95=(2.5, 3.5), predicted_speedup=2.9),
        remedy("compile", Status.BELOW_WORTH, exactness="close", predicted_speedup=1.01, why_not="too little"),
        remedy("vectorize", Status.FAILED, predicted_speedup=4.0, why_not="ended with exit code 1"),
    ]
    text = shown(
        msgspec.structs.replace(input_bound, remedies=tried, total_speedup=3.1), (2.9, 3.3), ["stopped: nothing left"]
    )
    order = ["3.1× faster", "cache: it", "tried, not kept", "threads: 1", "vectorize", "not tried", "compile"]
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)
    assert "bit for bit" in text and "3.00× [2.50 to 3.50], predicted 2.90×" in text
    assert "no gain" in text and "stopped: nothing left" in text
    assert max(map(len, text.splitlines())) <= 100


def test_nothing_kept_is_said(input_bound):
    text = shown(msgspec.structs.replace(input_bound, remedies=[], total_speedup=None))
    assert "nothing was kept: the program runs as fast" in text


def test_nothing_kept_for_want_of_time_is_not_called_the_end(input_bound):
    left = [remedy("memoize: it", Status.UNTRIED, predicted_speedup=1.2, why_not="it takes 18 % of the step")]
    text = shown(msgspec.structs.replace(input_bound, remedies=left, total_speedup=None))
    assert "not all was tried: a larger --budget may find more" in text and "as fast as" not in text


def test_close_remedies_are_not_called_bit_for_bit(input_bound):
    kept = [remedy("threads: 1", Status.KEPT, exactness="close", speedup=1.5)]
    text = shown(msgspec.structs.replace(input_bound, remedies=kept, total_speedup=1.5))
    assert "within rounding" in text and "bit for bit" not in text
