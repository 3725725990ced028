"""Changes of public programs, as ours are of the corpus' own: edits by pattern, so that nothing of theirs is here.

python bench/prove.py --commands                how to get the programs
python bench/prove.py --public ~/public ...     with them, as checkouts named owner+name
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from public_programs import PROGRAMS, clone, folder_of

_TEXT = """
import glob, os, pathlib
sources = sorted(glob.glob(os.path.dirname(os.__file__) + "/[a-c]*.py"))
text = "\\n".join(pathlib.Path(name).read_text() for name in sources)
os.makedirs("data/small", exist_ok=True)
for number, name in enumerate(("train", "valid", "test")):
    begin, size = (0, 120_000) if not number else (200_000 * number, 20_000)
    pathlib.Path("data/small", name + ".txt").write_text(text[begin : begin + size])
"""


@dataclass(frozen=True)
class PublicProgram:
    """A program of a repository, and a run of it that takes some seconds."""

    repository: str
    folder: str
    """In the repository."""
    command: tuple[str, ...]
    """As a person would type it after ``unstall prove``."""
    prepare: str = ""
    """Python that makes its data, once."""
    names: str = ""
    """Pattern of the files in the folder that are needed; all without it."""

    @property
    def commit(self) -> str:
        """The one that bench/public.py takes."""
        return next(program.commit for program in PROGRAMS if program.repository == self.repository)

    def copy(self, checkouts: Path, folder: Path) -> None:
        """Put its files at that commit into a folder."""
        with tempfile.TemporaryDirectory() as scratch:
            checkout, clone = checkouts / folder_of(self.repository), Path(scratch, "clone")
            clone_it = ["git", "clone", "--quiet", "--shared", "--no-checkout", os.fspath(checkout), os.fspath(clone)]
            subprocess.run(clone_it, check=True)
            wanted = [
                "git",
                "-C",
                os.fspath(clone),
                "checkout",
                "--quiet",
                self.commit,
                "--",
                os.path.join(self.folder, self.names),
            ]
            subprocess.run(wanted, check=True)
            shutil.rmtree(clone / ".git")
            shutil.copytree(clone / self.folder, folder, dirs_exist_ok=True)


_MAKEMORE = PublicProgram("karpathy/makemore", ".", ("makemore.py", "--max-steps", "80"))
_ADDER = PublicProgram("karpathy/minGPT", ".", ("-m", "projects.adder.adder", "--trainer.max_iters=60"))
_LANGUAGE = PublicProgram(
    "pytorch/examples", "word_language_model",
    ("main.py", "--data", "data/small", "--epochs", "2", "--batch_size", "20", "--emsize", "64", "--nhid", "64",
     "--log-interval", "10"),
    prepare=_TEXT, names="*.py",
)  # fmt: skip


@dataclass(frozen=True)
class PublicChange:
    """One change of one of them."""

    program: PublicProgram
    family: str
    name: str
    honest: bool
    edits: Mapping[str, tuple[tuple[str, str], ...]]
    """Of each file: patterns that are in it once, and what takes their place."""
    checkouts: Path

    @property
    def key(self) -> str:
        """``REPOSITORY/FAMILY/NAME``."""
        return f"{self.program.repository.partition('/')[2]}/{self.family}/{self.name}"

    @property
    def held_out(self) -> bool:
        """Whether nothing of the judge was made for it: bad ones, as honest ones were called different at first."""
        return not self.honest

    @property
    def command(self) -> tuple[str, ...]:
        """What is judged."""
        return self.program.command

    def lay_out(self, folder: Path) -> Path:
        """Put the program into an empty folder, and the patch beside it. Returns the patch."""
        self.program.copy(self.checkouts, folder)
        lines: list[str] = []
        for name, edits in self.edits.items():
            before = after = (folder / name).read_text()
            for pattern, wanted in edits:
                after, count = re.subn(pattern, wanted, after)
                assert count == 1, f"{self.key}: {pattern} is {count} times in {name}"
            both = (text.splitlines(keepends=True) for text in (before, after))
            lines += difflib.unified_diff(*both, f"a/{name}", f"b/{name}")
        patch = folder.with_suffix(".patch")
        patch.write_text("".join(lines))
        return patch

    def prepare(self, folder: Path) -> None:
        """Make its data."""
        if self.program.prepare:
            subprocess.run([sys.executable, "-c", self.program.prepare], cwd=folder, check=True)


def public(checkouts: Path) -> Iterator[PublicChange]:
    """All of them, of the repositories that are there."""
    for honest, changes in ((False, _BAD), (True, _HONEST)):
        for program, family, name, edits in changes:
            if (checkouts / folder_of(program.repository)).is_dir():
                yield PublicChange(program, family, name, honest, edits, checkouts)


def commands() -> list[str]:
    """Shell lines that get every repository at its commit."""
    programs = {each[0].repository: each[0].commit for each in (*_BAD, *_HONEST)}
    return [clone(repository, commit) for repository, commit in programs.items()]


# Patterns that more than one change uses.
_ATTENTION = r"att = \(q @[\s\S]*?\n( +)y = att @ v[^\n]*"
_FUSED = "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)"
_GELU = (r"return 0\.5 \* x \* [^\n]*", 'return F.gelu(x, approximate="tanh")')
_IN_THIS_PROCESS = (r"C\.num_workers = 4", "C.num_workers = 0")
_WORKERS = (r"(?<='--num-workers', '-n', type=int, default=)4", "0")
_ONE_PASS = (
    r"with open\(path, 'r', encoding=\"utf8\"\) as f:\n +for line in f:\n"
    r" +words = line\.split\(\) \+ \['<eos>'\]\n +for word in words:\n +self\.dictionary\.add_word\(word\)\n",
    "pass\n",
)
_ADDED = (r"ids\.append\(self\.dictionary\.word2idx\[word\]\)", "ids.append(self.dictionary.add_word(word))")
_CORPUS = (_ONE_PASS, _ADDED)
_CLIP = r"torch\.nn\.utils\.clip_grad_norm_\(model\.parameters\(\), [^)]*\)"

_HONEST: tuple[tuple[PublicProgram, str, str, Mapping[str, tuple[tuple[str, str], ...]]], ...] = (
    (_MAKEMORE, "fused operations", "attention of torch", {"makemore.py": ((_ATTENTION, _FUSED), _WORKERS)}),
    (_MAKEMORE, "fused operations", "gelu of torch", {"makemore.py": (_GELU, _WORKERS)}),
    (_MAKEMORE, "settings", "no workers for small samples", {"makemore.py": (_WORKERS,)}),
    (
        _MAKEMORE, "fused operations", "optimizer",
        {"makemore.py": ((r"eps=1e-8\)", "eps=1e-8, fused=True)"), _WORKERS)},
    ),
    (_ADDER, "settings", "no workers for small samples", {"mingpt/trainer.py": (_IN_THIS_PROCESS,)}),
    (_ADDER, "fused operations", "gelu of torch", {"mingpt/model.py": (_GELU,), "mingpt/trainer.py": (_IN_THIS_PROCESS,)}),
    (
        _ADDER, "vectorisation", "answers counted at once",
        {
            "projects/adder/adder.py": (
                (
                    r"for i in range\(x\.size\(0\)\):\n( +)results\.append\(int\(correct\[i\]\)\)",
                    r"results.extend(correct.int().tolist())\n            for i in (~correct).nonzero().flatten().tolist():",
                ),
            ),
            "mingpt/trainer.py": (_IN_THIS_PROCESS,),
        },
    ),
    (_LANGUAGE, "data structures", "corpus in one pass", {"data.py": _CORPUS}),
    (
        _LANGUAGE, "fused operations", "all weights at once",
        {
            "main.py": (
                (
                    r"for p in model\.parameters\(\):\n +p\.data\.add_\(p\.grad, alpha=-lr\)",
                    "weights = list(model.parameters())\n"
                    "            torch._foreach_add_([p.data for p in weights], [p.grad for p in weights], alpha=-lr)",
                ),
            ),
            "data.py": _CORPUS,
        },
    ),
)  # fmt: skip
"""Program, family, name, edits: the same, but for rounding."""

_BAD: tuple[tuple[PublicProgram, str, str, Mapping[str, tuple[tuple[str, str], ...]]], ...] = (
    (
        _MAKEMORE, "precision dropped", "forward in half the bits",
        {
            "makemore.py": (
                (
                    r"( +)logits, loss = model\(X, Y\)\n\n( +# calculate the gradient)",
                    r'\1with torch.autocast("cpu", torch.bfloat16):\n\1    logits, loss = model(X, Y)\n\n\2',
                ),
                _WORKERS,
            )
        },
    ),
    (
        _MAKEMORE, "smaller batch", "half of the rows",
        {"makemore.py": ((r"(batch = batch_loader\.next\(\)\n +batch = \[t)\.to", r"\1[: len(t) // 2].to"), _WORKERS)},
    ),
    (
        _MAKEMORE, "smaller model", "three layers",
        {"makemore.py": ((r"(?<='--n-layer', type=int, default=)4", "3"), _WORKERS)},
    ),
    (
        _MAKEMORE, "every other step", "gradients of every other batch",
        {"makemore.py": ((r"( +)loss\.backward\(\)\n", r"\1if step % 2 == 0:\n\1    loss.backward()\n"), _WORKERS)},
    ),
    (
        _MAKEMORE, "regularisation dropped", "no weight decay",
        {"makemore.py": ((r"weight_decay=args\.weight_decay", "weight_decay=0.0"), _WORKERS)},
    ),
    (
        _MAKEMORE, "model changed", "attention without its mask",
        {"makemore.py": ((_ATTENTION, _FUSED.replace("True", "False")), _WORKERS)},
    ),
    (
        _MAKEMORE, "outputs dropped", "half of the lines",
        {"makemore.py": ((r"if step % 10 == 0:", "if step % 20 == 0:"), _WORKERS)},
    ),
    (
        _ADDER, "regularisation dropped", "gradients that are not clipped",
        {"mingpt/trainer.py": ((_CLIP, "pass"), _IN_THIS_PROCESS)},
    ),
    (
        _ADDER, "validation cut", "a tenth of the training set",
        {
            "projects/adder/adder.py": ((r"\{1: None, 2: None, 3: 5\}", "{1: None, 2: 10, 3: 5}"),),
            "mingpt/trainer.py": (_IN_THIS_PROCESS,),
        },
    ),
    (
        _ADDER, "regularisation dropped", "no dropout in attention",
        {"mingpt/model.py": ((r"C\.attn_pdrop = 0\.1", "C.attn_pdrop = 0.0"),), "mingpt/trainer.py": (_IN_THIS_PROCESS,)},
    ),
    (
        _LANGUAGE, "regularisation dropped", "gradients that are not clipped",
        {"main.py": ((_CLIP, "pass"),), "data.py": _CORPUS},
    ),
    (
        _LANGUAGE, "validation cut", "every other window",
        {
            "main.py": ((r"(for i in range\(0, data_source\.size\(0\) - 1, )args\.bptt", r"\1 2 * args.bptt"),),
            "data.py": _CORPUS,
        },
    ),
    (
        _LANGUAGE, "fewer steps", "windows twice as long",
        {"main.py": ((r"('--bptt', type=int, default=)35", r"\g<1>70"),), "data.py": _CORPUS},
    ),
    (
        _LANGUAGE, "regularisation dropped", "no dropout",
        {"main.py": ((r"('--dropout', type=float, default=)0\.2", r"\g<1>0.0"),), "data.py": _CORPUS},
    ),
    (
        _LANGUAGE, "replayed outputs", "test loss is the last of validation",
        {"main.py": ((r"test_loss = evaluate\(test_data\)", "test_loss = val_loss"),), "data.py": _CORPUS},
    ),
)  # fmt: skip
"""The same of bad ones: each takes an honest gain with it."""
