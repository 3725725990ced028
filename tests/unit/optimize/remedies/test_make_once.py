"""Objects that are made anew in every call, made once: from what is the same each time, and kept nowhere else."""

from __future__ import annotations

import libcst as cst
import pytest
from optimize_builders import make_context, make_module, make_report

from unstall.optimize.remedies.make_once import REMEDY
from unstall.optimize.rewrites.make_once import made_in, making_once, refuse_kept
from unstall.optimize.runtime.made_once import _MadeOnce
from unstall.optimize.source.errors import AnalysisRefused, NotApplicable
from unstall.records.report import Hotspot

FEATURES = """import os.path as osp
import re

FOLDER = "definitions"


class Featurizer:
    def __init__(self, flags):
        self.flags = flags

    def __call__(self, text):
        # read each time
        name = osp.join("a", FOLDER)
        pattern = re.compile(name, self.flags)  # made
        return pattern.sub("", text)
"""


def made(source):
    module = make_module(source)
    function = [node for node in module.all(cst.FunctionDef) if node.name.value != "__init__"][-1]
    return module, list(made_in(module, function))


def rewritten(source):
    module, (*_, found) = made(source)
    refuse_kept(module, found)
    return making_once(module, found).code


def test_a_function_at_the_top_level_makes_it_by_the_attributes_it_is_made_of():
    changed = rewritten(FEATURES)
    assert (
        '@_MadeOnce\ndef _pattern_of_compile(flags):\n    return re.compile(osp.join("a", FOLDER), flags)\n' in changed
    )
    assert "        pattern = _pattern_of_compile(self.flags)  # made\n" in changed
    for source in (FEATURES, changed):
        space: dict = {}
        exec(compile(source, "features.py", "exec"), space)
        assert space["Featurizer"](2)("xA/DEFINITIONSx") == "xx"
        assert space["Featurizer"](0)("xA/DEFINITIONSx") == "xA/DEFINITIONSx"


@pytest.mark.parametrize(
    "body",
    [
        "x = re.compile(text)",  # what it is given differs
        "x = re.compile(SEEN[0])",
        "x = helper('a')",  # the program's own: `memoize` knows whether that is pure
        "x = random.Random()",
        "n = 1\n        n += 1\n        x = re.compile(str(n))",
        "if text:\n            n = 'a'\n        x = re.compile(n)",
        "x = [re.compile('a') for _ in text]",
    ],
)
def test_what_may_differ_from_call_to_call_is_not_made_once(body):
    source = f"import random\nimport re\nSEEN = []\ndef helper(x):\n    return x\nclass A:\n    def f(self, text):\n        {body}\n        return x.sub('', text)\n"
    assert not [found for found in made(source)[1] if found.name.value == "x"]


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("return x", "kept elsewhere"),
        ("self.seen = x", "kept elsewhere"),
        ("self.seen.append(x)", "kept elsewhere"),
        ("x[0] = 1", "changes x"),
        ("x.update(a=1)", "changes x"),
        ("x += 1", "changes x"),
    ],
)
def test_what_leaves_the_function_or_changes_in_it_is_refused(use, why):
    with pytest.raises(AnalysisRefused, match=why):
        rewritten(f"import lib\nclass A:\n    def f(self):\n        x = lib.Maker(3)\n        {use}\n")


@pytest.mark.parametrize("use", ["x(self.wave)", "x.apply(self.wave)", "lib.stft(self.wave, window=x)"])
def test_what_is_only_used_may_be_made_once(use):
    assert "_MadeOnce" in rewritten(
        f"import lib\nclass A:\n    def f(self):\n        x = lib.Maker(3)\n        return {use}\n"
    )


def test_plain_values_are_remembered_and_others_made_anew():
    calls = []
    make = _MadeOnce(lambda *given: calls.append(given) or object())
    assert make(1, "a") is make(1, "a")
    assert make(1) is not make(1.0)
    assert make(True) is not make(1)
    assert make([1]) is not make([1])
    kept = [make(number) for number in range(200)]
    assert make(199) is kept[199]
    assert len(make._made) <= 64


@pytest.mark.parametrize(("share", "found"), [(0.5, True), (0.01, False)])
def test_the_hot_line_is_proposed(tmp_path, share, found):
    (tmp_path / "train.py").write_text(FEATURES)
    line = FEATURES.splitlines().index("        pattern = re.compile(name, self.flags)  # made") + 1
    spot = Hotspot(
        function="Featurizer.__call__", file=str(tmp_path / "train.py"), line=line, share=share, where="main"
    )
    context = make_context(tmp_path, report=make_report(hotspots=[spot]))
    if not found:
        with pytest.raises(NotApplicable):
            REMEDY.propose(context)
        return
    (proposal,) = REMEDY.propose(context)
    assert proposal.title == f"pattern is made once (train.py:{line})"
    assert proposal.predicted == pytest.approx(1 / (1 - 0.5 * 0.98))
