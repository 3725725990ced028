"""Hot loops over numbers are proposed to be compiled, where the compiler is installed."""

from __future__ import annotations

import pytest
from optimize_builders import make_context, make_measurement, make_report

from unstall.optimize.remedies.compile_loop import REMEDY, CompileLoop
from unstall.optimize.source.errors import NotApplicable
from unstall.records.observations import Frame, StackSample
from unstall.records.report import Hotspot

SOURCE = """def returns(rewards, decay):
    running, out = 0.0, []
    for reward in rewards:
        running = reward + decay * running
        out.append(running)
    return out
"""


class WithoutCompiler(CompileLoop):
    compiler = "no_compiler_of_this_name"


def case(tmp_path, share=0.6, samples=()):
    (tmp_path / "play.py").write_text(SOURCE)
    spot = Hotspot(function="returns", file=str(tmp_path / "play.py"), line=4, share=share, phase="callbacks")
    report = make_report(hotspots=[spot], phases={"callbacks": share, "forward": 1 - share})
    return make_context(tmp_path, report=report, measurement=make_measurement(samples=list(samples)))


def test_a_hot_loop_is_proposed(tmp_path):
    pytest.importorskip("numba")
    (proposal,) = REMEDY.propose(case(tmp_path))
    assert proposal.title == "the loop of returns (play.py:3) compiled by Numba"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.6 * 0.9))
    (changed,) = proposal.sources.changed.values()
    assert b"return _returns_loop(rewards, decay)\n" in changed


def test_a_loop_that_takes_no_time_is_not(tmp_path):
    with pytest.raises(NotApplicable, match=r"the loop of returns takes 1 % of the step"):
        REMEDY.propose(case(tmp_path, share=0.01))


@pytest.mark.parametrize(("inner", "predicted"), [("numpy/core.py", 2.17), ("pandas/frame.py", None), (None, 2.17)])
def test_what_libraries_take_that_a_loop_calls_stays(tmp_path, inner, predicted):
    pytest.importorskip("numba")
    frames = [Frame("returns", str(tmp_path / "play.py"), 4)]
    if inner:
        frames.append(Frame("item", f"/usr/lib/python3/site-packages/{inner}", 7))
    context = case(tmp_path, samples=[StackSample(1, "MainThread", tuple(frames), 9)])
    if predicted:
        assert REMEDY.propose(context)[0].predicted == pytest.approx(predicted, abs=0.01)
    else:
        with pytest.raises(NotApplicable, match=r"100 % of the loop of returns are libraries"):
            REMEDY.propose(context)


def test_without_the_compiler_the_reason_says_what_to_install(tmp_path):
    with pytest.raises(NotApplicable, match=r"the loop of returns \(play.py:3\) .* needs Numba: pip install numba"):
        WithoutCompiler().propose(case(tmp_path))
