"""A package that is not unstall's adds a phase and a seam by entry points, and they show wherever a run is shown."""

import re
import sys

import pytest

SEAM = """
    from unstall.child.recording import wrap_attribute
    from unstall.records.vocabulary import Phase, Seam, Tick

    TOKENIZE = Phase("tokenize", "turning text into numbers")
    ENCODE = Seam("~tokens.encode", phase="tokenize", counts=Tick.OTHER)


    def install(module):
        wrap_attribute(module.Tokenizer, "encode", ENCODE)


    SEAMS = (ENCODE,)
    TARGETS = {"toytokens": install}
"""
LIBRARY = '''
    """A tokenizer that takes its time."""


    class Tokenizer:
        def encode(self, text):
            numbers = [0.0] * 8
            for at, letter in enumerate(text * 2000):
                numbers[at % 8] = (numbers[at % 8] * 31 + ord(letter)) % 97
            return numbers
'''
PROGRAM = """
    import time

    import torch
    from torch import nn
    from toytokens import Tokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = Tokenizer()
    model = nn.Linear(8, 1)
    began, spent = time.perf_counter(), 0.0
    for step in range(200):
        before = time.perf_counter()
        numbers = [tokenizer.encode(text) for text in ("one and two", "three")]
        spent += time.perf_counter() - before
        loss = model(torch.tensor(numbers)).square().mean()
        loss.backward()
        time.sleep(0.001)
        if step == 49:
            began, spent = time.perf_counter(), 0.0
    print(spent / (time.perf_counter() - began))
"""


@pytest.fixture
def plugin(workspace):
    """Installs the package, with entry points of both groups; its folder is what PYTHONPATH is to hold."""

    def install(**groups):
        workspace.write("site/toytokens.py", LIBRARY)
        workspace.write("site/unstall_tokens/__init__.py", "")
        workspace.write("site/unstall_tokens/seam.py", SEAM)
        info = "site/unstall_tokens-1.0.dist-info"
        workspace.write(f"{info}/METADATA", "Metadata-Version: 2.1\nName: unstall-tokens\nVersion: 1.0\n")
        sections = (
            "\n".join([f"[unstall.{group}]", *(f"{name} = {value}" for name, value in entries.items())])
            for group, entries in groups.items()
        )
        workspace.write(f"{info}/entry_points.txt", "\n".join(sections) + "\n")
        workspace.write("program.py", PROGRAM)
        return {"PYTHONPATH": str(workspace.folder / "site")}

    return install


def unstall(workspace, *words, env=None):
    command = [sys.executable, "-m", "unstall", *words]
    return workspace.start(command, env=env).result()


def test_a_phase_of_a_plugin_shows_wherever_a_run_is_shown(workspace, plugin):
    env = plugin(seams={"tokens": "unstall_tokens.seam"}, phases={"tokenize": "unstall_tokens.seam:TOKENIZE"})
    ran = workspace.watched("program.py", env=env, options=["--markdown", "run.md", "--no-sampling"])
    assert ran.status == 0
    assert "plug-in" not in ran.notes
    phases = {phase["name"]: phase for phase in ran.report["phases"]}
    timed = phases["tokenize"]["wall_s"] / sum(phase["wall_s"] for phase in phases.values())
    assert timed == pytest.approx(float(ran.out), abs=0.08)
    assert timed > 0.2
    assert phases["tokenize"]["what"] == "turning text into numbers"
    percent = rf"{100 * phases['tokenize']['share']:.0f} ?%"
    assert re.search(rf"tokenize +[█▏▎▍▌▋▊▉]+ +{percent}.*turning text into numbers", ran.err)
    markdown = (workspace.folder / "run.md").read_text()
    assert re.search(rf"\| tokenize \| {percent} \|.*turning text into numbers", markdown)
    # Where the package is not installed, a run that is kept shows the phase all the same.
    page = unstall(workspace, "report", "last", "--html", "run.html")
    assert page.status == 0, page.err
    html = (workspace.folder / "run.html").read_text()
    assert re.search(rf'<i class="swatch p-tokenize"></i>tokenize</span></t.>\s*<td[^>]*>{percent}</td>', html)
    assert "--p-tokenize:var(--e-0)" in html


def test_a_plugin_that_does_not_fit_is_a_note_and_the_program_is_what_it_was(workspace, plugin):
    env = plugin(
        seams={
            "tokens": "unstall_tokens.seam",
            "gone": "unstall_tokens.gone",
            "leaves": "unstall_tokens.leaves",
            "phase": "unstall_tokens.seam:TOKENIZE",
        },
        phases={"forward": "unstall_tokens.phases:FORWARD"},
    )
    workspace.write("site/unstall_tokens/leaves.py", "raise SystemExit('it left')\n")
    workspace.write(
        "site/unstall_tokens/phases.py",
        """
        from unstall.records.vocabulary import Phase

        FORWARD = Phase("forward", "mine")
        """,
    )
    workspace.write("program.py", "from tiny import training\nprint(*(loss for _, loss in training(60)))\n")
    _, watched = workspace.both("program.py", env=env)
    for line in (
        r"plug-in 'tokens' \(unstall.seams = unstall_tokens.seam\) is ignored: there is no phase 'tokenize'",
        r"plug-in 'gone' \(unstall.seams = unstall_tokens.gone\) is ignored: ModuleNotFoundError: ",
        r"plug-in 'leaves' \(unstall.seams = unstall_tokens.leaves\) is ignored: SystemExit: it left",
        r"plug-in 'phase' \(.*\) is ignored: its SEAMS are no tuple of seams",
        r"plug-in 'forward' \(.*\) is ignored: there is a phase 'forward' already",
    ):
        assert re.search(line, watched.notes), watched.notes
    assert watched.steps > 0


def test_a_seam_that_fails_in_place_is_a_note(workspace, plugin):
    env = plugin(seams={"tokens": "unstall_tokens.seam"}, phases={"tokenize": "unstall_tokens.seam:TOKENIZE"})
    broken = SEAM.replace('wrap_attribute(module.Tokenizer, "encode", ENCODE)', "module.gone.encode")
    workspace.write("site/unstall_tokens/seam.py", broken)
    ran = workspace.watched("program.py", env=env, options=["--no-sampling"])
    assert ran.status == 0
    assert "seam toytokens: AttributeError" in ran.notes
    assert ran.steps > 0
