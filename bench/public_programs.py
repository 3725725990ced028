"""Public programs that `make public-bench` runs as they are: where they are from, and what a person would type.

Nothing of theirs is in this repository. ``python bench/public.py --commands`` prints how to get them.
"""

from __future__ import annotations

from dataclasses import dataclass

_SOURCES = "glob.glob(os.path.dirname(os.__file__) + '/[a-d]*.py')"
_TEXT = f'python -c "import glob, os; [print(open(name).read()) for name in sorted({_SOURCES})]"'
"""Prints half a megabyte of text that every machine has: sources of the standard library."""


@dataclass(frozen=True)
class Program:
    """One program of a repository, and what is typed to run it for about a minute on two cores."""

    name: str
    repository: str
    """``owner/name`` on GitHub."""
    commit: str
    folder: str
    """In the repository, where it is run."""
    arguments: tuple[str, ...]
    """What comes after ``python``."""
    prepare: str = ""
    """A shell command, once, in that folder: makes the data."""
    seeded: bool = True
    """Whether the program seeds its random numbers; seeded.py does so where it does not."""
    needs: tuple[str, ...] = ()
    """Packages beside torch."""


def folder_of(repository: str) -> str:
    """The name of a checkout of ``owner/name``."""
    return repository.replace("/", "+")


def clone(repository: str, commit: str) -> str:
    """The shell line that makes one."""
    folder = folder_of(repository)
    return f"git clone https://github.com/{repository} {folder} && git -C {folder} checkout {commit}"


_EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8")
_CLEANRL = ("vwxyzjn/cleanrl", "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb")
_MAKEMORE = ("karpathy/makemore", "988aa59e4d8fefa526d06f3b453ad116258398d4")
_MINGPT = ("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26")
_NANOGPT = ("karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291")
_NLP = ("graykode/nlp-tutorial", "d05e31ec81d56d70c1db89b99ab07e948f7ebc11")
_TUTORIAL = ("yunjey/pytorch-tutorial", "0500d3df5a2a8080ccfccbc00aca0eacc21818db")
_JCJOHNSON = ("jcjohnson/pytorch-examples", "0003fcdc606a79951e53bf8f46f8574fa4739f23")

_LANGUAGE = ("main.py", "--epochs", "1", "--batch_size", "40", "--emsize", "64", "--nhid", "64")
_WIKITEXT = "cp data/wikitext-2/valid.txt data/wikitext-2/train.txt"
_RL = ("gymnasium", "tyro", "tensorboard")

PROGRAMS = (
    Program("makemore transformer", *_MAKEMORE, ".", ("makemore.py", "--max-steps", "500")),
    Program("makemore rnn", *_MAKEMORE, ".", ("makemore.py", "--type", "rnn", "--max-steps", "500")),
    Program("minGPT adder", *_MINGPT, ".", ("-m", "projects.adder.adder", "--trainer.max_iters=400")),
    Program(
        "nanoGPT shakespeare_char", *_NANOGPT, ".",
        ("train.py", "config/train_shakespeare_char.py", "--device=cpu", "--compile=False", "--eval_iters=5",
         "--block_size=64", "--batch_size=12", "--n_layer=4", "--n_head=4", "--n_embd=128", "--max_iters=200"),
        prepare=f"cd data/shakespeare_char && {_TEXT} > input.txt && python prepare.py", needs=("requests",),
    ),
    Program("cleanrl ppo", *_CLEANRL, ".", ("-m", "cleanrl.ppo", "--total-timesteps", "30000"), needs=_RL),
    Program(
        "cleanrl c51", *_CLEANRL, ".",
        ("-m", "cleanrl.c51", "--total-timesteps", "40000", "--learning-starts", "2000"), needs=_RL,
    ),
    Program("examples actor_critic", *_EXAMPLES, "reinforcement_learning", ("actor_critic.py",), needs=("gymnasium",)),
    Program("examples reinforce", *_EXAMPLES, "reinforcement_learning", ("reinforce.py",), needs=("gymnasium",)),
    Program("examples regression", *_EXAMPLES, "regression", ("main.py",), seeded=False),
    Program("examples word_language_model LSTM", *_EXAMPLES, "word_language_model", _LANGUAGE, prepare=_WIKITEXT),
    Program(
        "examples word_language_model Transformer", *_EXAMPLES, "word_language_model",
        (*_LANGUAGE, "--model", "Transformer"), prepare=_WIKITEXT,
    ),
    Program("nlp-tutorial Transformer", *_NLP, "5-1.Transformer", ("Transformer.py",), seeded=False,
            needs=("matplotlib",)),
    Program("nlp-tutorial BERT", *_NLP, "5-2.BERT", ("BERT.py",), seeded=False),
    Program("nlp-tutorial Seq2Seq", *_NLP, "4-1.Seq2Seq", ("Seq2Seq.py",), seeded=False),
    Program(
        "pytorch-tutorial language_model", *_TUTORIAL, "tutorials/02-intermediate/language_model", ("main.py",),
        prepare=f"{_TEXT} | head -c 60000 > data/train.txt", seeded=False,
    ),
    Program("jcjohnson two_layer_net_optim", *_JCJOHNSON, ".", ("nn/two_layer_net_optim.py",), seeded=False),
)  # fmt: skip
