"""A package that is not unstall's adds one of everything by entry points, and it shows wherever people look.

No file of unstall's is touched for it: what follows from a pattern, a phase, a seam, an intervention, a remedy or an
exporter is read from its object.
"""

import json
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

DOCS = Path(__file__).parents[2] / "docs"
PLUGIN = """
    import sys
    from pathlib import Path

    from unstall.child import finding
    from unstall.child.recording import wrap_attribute
    from unstall.records.vocabulary import Phase, Seam, Tick

    TOKENIZE = Phase("tokenize", "turning text into numbers")
    ENCODE = Seam("~tokens.encode", phase="tokenize", counts=Tick.OTHER, stub="tokens")


    def install(module):
        wrap_attribute(module.Tokenizer, "encode", ENCODE)


    def find():
        tokenizer = getattr(sys.modules.get("toytokens"), "Tokenizer", None)
        return finding.functions([finding.inner(getattr(tokenizer, "encode", None))])


    SEAMS = (ENCODE,)
    TARGETS = {"toytokens": install}
    FINDERS = {"tokens": find}
"""
PATTERN = '''
    """token-bound: the tokenizer takes much of the step."""

    from unstall.diagnose.patterns.base import Pattern
    from unstall.records.report import NextStep


    class TokenBound(Pattern):
        """Texts are turned into numbers one by one."""

        name = "token-bound"
        brief = "the tokenizer takes much of the step"
        phases = ("tokenize",)
        by_hand = ((None, "tokenize the whole corpus once"),)
        next_step = NextStep(label="see which texts are long:", option="--memory")

        def on_host(self, host):
            share = host.share("tokenize")
            headroom = host.headroom_without(host.seconds.get("tokenize", 0.0))
            if share < 0.1:
                return None
            return self.finding(
                headroom=headroom, share=share, phases=self.phases,
                culprit=host.blame.main_culprit(host.blame.in_phase("tokenize")),
                evidence=[f"{share:.0%} of a step turns text into numbers"], advice=["tokenize ahead"],
            )

        def sentence(self, finding, use):
            return "each step waits for its tokens"


    PATTERN = TokenBound()
'''
INTERVENTION = '''
    from unstall.child.experiments.interventions.replacing import ReplacingIntervention


    class NoTokens(ReplacingIntervention):
        """Every text is the same numbers."""

        name = component = "tokens"
        title = "without the tokenizer"
        phase = "tokenize"
        proves = "token-bound"

        def stand_in(self):
            return lambda original, args, kwargs: [0.0] * 8
'''
REMEDY = """
    from unstall.optimize.proposal import Proposal
    from unstall.optimize.remedies.base import Remedy


    class TokenizeAhead(Remedy):
        name = "tokenize-ahead"
        brief = "tokenizes before training"
        patterns = ("token-bound",)
        exactness = "exact"

        def propose(self, context):
            return [Proposal("of the toy tokenizer", 2.0, "it takes most of the step", advice_only=True)]


    REMEDY = TokenizeAhead()
"""
EXPORTER = """
    from pathlib import Path

    from unstall.exports import Exporter


    class Verdict(Exporter):
        name = "verdict-line"
        help = "Write the verdict's name."
        metavar = "FILE"
        takes = ("report",)
        extra = ""

        def export(self, source, target, flags=frozenset()):
            Path(target).write_text(source.verdict.pattern)


    EXPORTER = Verdict()
"""
LIBRARY = """
    class Tokenizer:
        def encode(self, text):
            numbers = [0.0] * 8
            for at, letter in enumerate(text * 3000):
                numbers[at % 8] = (numbers[at % 8] * 31 + ord(letter)) % 97
            return numbers
"""
PROGRAM = """
    import torch
    from torch import nn
    from toytokens import Tokenizer

    def main():
        torch.manual_seed(0)
        torch.set_num_threads(1)
        tokenizer = Tokenizer()
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        for step in range(100_000):
            numbers = [tokenizer.encode(text) for text in ("one and two", "three")]
            loss = model(torch.tensor(numbers)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    if __name__ == "__main__":
        main()
"""
ENTRY_POINTS = {
    "phases": "tokenize = toyshop.seam:TOKENIZE",
    "seams": "tokens = toyshop.seam",
    "patterns": "token-bound = toyshop.pattern:PATTERN",
    "interventions": "tokens = toyshop.intervention:NoTokens",
    "remedies": "tokenize-ahead = toyshop.remedy:REMEDY",
    "exporters": "verdict-line = toyshop.exporter:EXPORTER",
}


@pytest.fixture
def env(workspace):
    """The package, installed in a folder of its own; the environment that finds it."""
    workspace.write("site/toytokens.py", LIBRARY)
    workspace.write("site/toyshop/__init__.py", "")
    for name, source in (
        ("seam", PLUGIN), ("pattern", PATTERN), ("intervention", INTERVENTION), ("remedy", REMEDY), ("exporter", EXPORTER)
    ):  # fmt: skip
        workspace.write(f"site/toyshop/{name}.py", source)
    info = "site/toyshop-1.0.dist-info"
    workspace.write(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toyshop\nVersion: 1.0\n")
    groups = "\n".join(f"[unstall.{group}]\n{line}" for group, line in ENTRY_POINTS.items())
    workspace.write(f"{info}/entry_points.txt", groups + "\n")
    workspace.write("program.py", PROGRAM)
    return {"PYTHONPATH": str(workspace.folder / "site")}


def unstall(workspace, *words, env):
    done = workspace.start([sys.executable, "-m", "unstall", *words], env=env).result()
    assert done.status == 0, done.err
    return done


def test_one_of_each_shows_in_every_command(workspace, env):
    ran = workspace.watched("program.py", env=env, options=["--steps", "300", "--markdown", "run.md"])
    verdict = ran.report["verdict"]
    assert verdict["pattern"] == "token-bound", ran.err
    assert {phase["name"] for phase in ran.report["phases"]} >= {"tokenize", "forward"}
    headline = "each step waits for its tokens"
    assert headline in " ".join(ran.err.split())
    assert headline in (workspace.folder / "run.md").read_text()
    assert verdict["next_step"] == {"label": "see which texts are long:", "option": "--memory"}
    unstall(workspace, "report", "last", "--html", "run.html", env=env)
    assert headline[1:] in (workspace.folder / "run.html").read_text()
    unstall(workspace, "export", "last", "--verdict-line", "verdict.txt", env=env)
    assert (workspace.folder / "verdict.txt").read_text() == "token-bound"

    words = ["--stub", "tokens", "--budget", "20s", "--json", "simplify.json", "program.py"]
    unstall(workspace, "simplify", *words, env=env)
    simplified = json.loads((workspace.folder / "simplify.json").read_text())
    (experiment,) = [one for one in simplified["experiments"] if one["name"] == "without the tokenizer"]
    assert experiment["ratio"] > 1
    assert simplified["verdict"]["pattern"] == "token-bound"
    assert simplified["verdict"]["headroom_known_by"] == "measured"

    source = f"import sys; sys.path.insert(0, {str(DOCS)!r}); import generate; print(generate.patterns())"
    index = workspace.start([sys.executable, "-c", source], env=env).result()
    assert "| `token-bound` | the tokenizer takes much of the step |" in index.out


def test_its_remedy_and_advice_are_among_those_of_optimize(workspace, env):
    words = ["--budget", "20s", "--json", "optimize.json", "program.py"]
    done = unstall(workspace, "optimize", *words, env=env)
    assert "tokenize the whole corpus once" in " ".join((done.out + done.err).split())
    names = [remedy["name"] for remedy in json.loads((workspace.folder / "optimize.json").read_text())["remedies"]]
    assert "tokenize-ahead: of the toy tokenizer" in names
