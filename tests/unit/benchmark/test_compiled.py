"""What torch says of its compilations, put together by function."""

from __future__ import annotations

from unstall.benchmark.compiled import compiled_frames

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False\n  Explanation: Dynamo does not support …"
PRINT = "Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace `print`"


def fact(frame, function="forward", line=7, *, reason="", breaks=(), failure=""):
    file = "net.py" if function else ""
    return {
        "frame": frame,
        "function": function,
        "file": file,
        "line": line,
        "reason": reason,
        "breaks": list(breaks),
        "failure": failure,
    }


def test_a_function_that_is_compiled_once_is_not_hindered():
    (frame,) = compiled_frames([fact("0")])
    assert (frame.function, frame.file, frame.line, frame.graphs, frame.compilations) == ("forward", "net.py", 7, 1, 1)
    assert not frame.hindered


def test_the_guards_that_failed_come_in_the_order_of_their_number():
    size, calls = (
        "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 9",
        "0/1: self.calls == 1      # self.calls",
    )
    (frame,) = compiled_frames([fact("0"), fact("0", reason=calls), fact("0", reason=size), fact("0", reason=size)])
    assert frame.reasons == ["tensor 'x' size mismatch at index 0. expected 8, actual 9", "self.calls == 1"]
    assert (frame.graphs, frame.compilations) == (1, 4)


def test_what_comes_after_a_break_is_the_same_function_and_says_where_it_was():
    (frame,) = compiled_frames(
        [
            fact("0", breaks=[ITEM]),
            fact("1", "torch_dynamo_resume_in_forward_at_9", 9, breaks=[PRINT]),
            fact("2", "torch_dynamo_resume_in_forward_at_12", 12),
        ]
    )
    assert (frame.function, frame.line, frame.graphs) == ("forward", 7, 3)
    assert [(broken.line, broken.reason) for broken in frame.breaks] == [
        (9, "Unsupported Tensor.item() call with capture_scalar_outputs=False"),
        (12, "Failed to trace builtin operator"),
    ]


def test_a_piece_that_is_compiled_again_is_no_further_break():
    resumed = "torch_dynamo_resume_in_forward_at_9"
    again = [
        fact("1", resumed, 9, reason="1/0: self.seen == 1"),
        fact("0", breaks=[ITEM], reason="0/0: self.seen == 1"),
    ]
    (frame,) = compiled_frames([fact("0", breaks=[ITEM]), fact("1", resumed, 9), *again])
    assert (len(frame.breaks), frame.graphs, frame.compilations) == (1, 2, 4)


def test_what_torch_gives_up_is_said_with_the_guard_that_failed_last():
    facts = [
        fact("0"),
        fact("0", "", 0, reason="0/7: self.calls == 7", failure="Dynamo recompile limit exceeded\n Hint"),
    ]
    (frame,) = compiled_frames(facts)
    assert frame.given_up == "self.calls == 7"
    assert frame.hindered


def test_a_failure_of_what_was_never_met_says_nothing():
    assert compiled_frames([fact("4", "", 0, failure="Dynamo recompile limit exceeded")]) == []


def test_functions_of_one_name_in_two_files_are_two():
    other = {**fact("1"), "file": "other.py"}
    assert [frame.file for frame in compiled_frames([fact("0"), other])] == ["net.py", "other.py"]


def test_what_comes_after_a_break_belongs_to_the_nearest_function_of_its_name_above():
    """Every module's is called forward."""
    facts = [fact("0", line=20), fact("1", line=7), fact("2", "torch_dynamo_resume_in_forward_at_12", 12)]
    outer, inner = compiled_frames(facts)
    assert (outer.line, outer.graphs, outer.breaks) == (20, 1, [])
    assert (inner.line, inner.graphs, inner.breaks[0].line) == (7, 2, 12)


def test_long_reasons_are_cut():
    (frame,) = compiled_frames([fact("0"), fact("0", reason="0/0: " + "x" * 500)])
    assert len(frame.reasons[0]) < 130
