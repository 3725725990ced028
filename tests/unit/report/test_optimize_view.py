"""The screen of `unstall optimize`."""

from __future__ import annotations

import msgspec

from unstall.records.remedies import RemedyStatus, TriedRemedy
from unstall.report import optimize_view


def shown(report, remarks=()):
    return optimize_view.page(optimize_view.OptimizeResult(report, remarks), 100).as_text()


def test_what_was_kept_comes_first_and_reasons_follow(input_bound):
    tried = [
        TriedRemedy(name="threads: 1", exactness="close", kept=False, speedup=0.9, ci95=(0.8, 1.0), why_not="no gain"),
        TriedRemedy(
            name="cache: it",
            exactness="exact",
            sameness="exact",
            kept=True,
            speedup=3.0,
            ci95=(2.5, 3.5),
            predicted_speedup=2.9,
        ),
        TriedRemedy(
            name="compile",
            exactness="close",
            kept=False,
            predicted_speedup=1.01,
            why_not="not tried: too little",
            status=RemedyStatus.BELOW_WORTH,
        ),
    ]
    text = shown(
        msgspec.structs.replace(input_bound, remedies=tried, total_speedup=3.1, total_ci95=(2.9, 3.3)),
        ["stopped: nothing left"],
    )
    assert "(95 % between 2.9× and 3.3× in these runs)" in text
    assert text.index("3.1× faster") < text.index("cache: it") < text.index("threads: 1") < text.index("compile")
    assert "bit for bit" in text and "3.00× [2.50 to 3.50], predicted 2.90×" in text
    assert "no gain" in text and "stopped: nothing left" in text
    assert max(map(len, text.splitlines())) <= 100


def test_nothing_kept_is_said(input_bound):
    text = shown(msgspec.structs.replace(input_bound, remedies=[], total_speedup=None))
    assert "nothing was kept: the program runs as fast" in text


def test_nothing_kept_for_want_of_time_is_not_called_the_end(input_bound):
    why_not = "not tried: the budget was spent (it takes 18 % of the step)"
    left = [
        TriedRemedy(
            name="memoize: it",
            exactness="exact",
            kept=False,
            predicted_speedup=1.2,
            why_not=why_not,
            status=RemedyStatus.UNTRIED,
        )
    ]
    text = shown(msgspec.structs.replace(input_bound, remedies=left, total_speedup=None))
    assert "not everything was tried: a larger --budget may find more" in text and "as fast as" not in text


def test_close_remedies_are_not_called_bit_for_bit(input_bound):
    kept = [TriedRemedy(name="threads: 1", exactness="exact", kept=True, speedup=1.5, sameness="close")]
    text = shown(msgspec.structs.replace(input_bound, remedies=kept, total_speedup=1.5))
    assert "close: the same results but for rounding" in text and "bit for bit" not in text


def test_the_total_is_as_the_least_of_what_is_kept(input_bound):
    kept = [
        TriedRemedy(name=name, exactness=sameness, kept=True, speedup=1.5, sameness=sameness)
        for name, sameness in (("a", "exact"), ("b", "reduced"), ("c", "close"))
    ]
    text = shown(msgspec.structs.replace(input_bound, remedies=kept, total_speedup=3.0))
    assert "3× faster, reduced: other results, as you allowed" in text


def test_advice_is_apart_from_what_was_tried(input_bound):
    advice = TriedRemedy(
        name="autocast: it", exactness="reduced", kept=False, speedup=1.6, status=RemedyStatus.ADVICE,
        why_not="would bring 1.60×; it changes results: --allow reduced",
    )  # fmt: skip
    text = shown(msgspec.structs.replace(input_bound, remedies=[advice], total_speedup=None))
    assert "  advice\n" in text and "tried, not kept" not in text and "--allow reduced" in text


def test_a_total_that_may_be_none_is_not_called_certain(input_bound):
    report = msgspec.structs.replace(input_bound, total_speedup=2.0)
    certain, not_certain = (msgspec.structs.replace(report, total_ci95=ends) for ends in ((1.8, 2.2), (0.9, 4.4)))
    assert "2× faster (95 % between 1.8× and 2.2× in these runs)" in shown(certain)
    assert "2× faster, not certain (95 % between 0.9× and 4.4× in these runs)" in shown(not_certain)
