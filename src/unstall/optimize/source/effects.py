"""What calls do, by the qualified name of what is called: the one table for every reading of source.

It says what a reader of the documentation would say. Where it is wrong about a program, running the changed program
beside the original shows that; see :mod:`unstall.child.trial.check`.
"""

from __future__ import annotations

from enum import Flag, auto


class Effect(Flag):
    """What a call may do besides giving a value that depends on its arguments alone."""

    NONE = 0
    RANDOM = auto()
    """It draws random numbers."""
    CLOCK = auto()
    """It reads a clock, or waits for a device so that a clock can be read."""
    ORDERED = auto()
    """It takes from or gives to a stream, a queue or a person: it may not be made ahead of its turn."""
    ACTS = auto()
    """It is made for what it does outside of the program."""
    MUTATES = auto()
    """It changes the object whose method it is."""
    READS = auto()
    """It looks at what it is given, and keeps nothing of it."""
    VALUE = auto()
    """A class whose objects never change."""
    SIZED = auto()
    """What it gives has a length and is known as a whole."""
    WRAPS = auto()
    """What it gives has a length if its arguments have one."""
    COMPUTES = auto()
    """It gives a value and does nothing else, if what it calls of its arguments does no more."""


_MODULES = {
    "random": Effect.RANDOM, "numpy.random": Effect.RANDOM, "torch.random": Effect.RANDOM, "secrets": Effect.RANDOM,
    "uuid": Effect.RANDOM, "time": Effect.CLOCK, "datetime": Effect.CLOCK,
}  # fmt: skip
"""All calls of a module, by its qualified name."""

_BUILTINS = {
    Effect.ORDERED: "input next print exec eval",
    Effect.ACTS: "print exec eval input",
    Effect.READS: "len range enumerate zip sorted reversed min max sum any all map filter list tuple set iter print "
                  "isinstance type",
    Effect.SIZED: "range list sorted tuple dict",
    Effect.WRAPS: "enumerate zip reversed",
    Effect.COMPUTES: "abs all any ascii bin bool bytes callable chr complex dict divmod enumerate float format "
                     "frozenset getattr hasattr hash hex id int isinstance issubclass len list max min oct ord pow "
                     "range repr reversed round set slice sorted str sum tuple type zip",
}  # fmt: skip

_LAST = {
    Effect.RANDOM: "rand randn randint randperm rand_like randn_like bernoulli multinomial normal uniform shuffle "
                   "choice choices sample random dropout urandom getrandbits default_rng integers permutation permuted "
                   "poisson exponential",
    Effect.CLOCK: "time perf_counter monotonic process_time perf_counter_ns time_ns monotonic_ns now record "
                  "synchronize",
    Effect.ORDERED: "open_connection recv accept readline get_nowait grab poll",
    Effect.ACTS: "write writelines put log",
    Effect.MUTATES: "append extend insert pop remove clear sort reverse update add write fill put setdefault popitem "
                    "discard writelines",
    Effect.READS: "count index copy",
    Effect.VALUE: "Path PurePath Fraction Decimal",
    Effect.SIZED: "listdir glob items keys values tolist split arange splitlines trange",
    Effect.WRAPS: "tqdm track",
}  # fmt: skip
"""Functions and methods by the last part of their name, whatever they belong to: an object's type is not known."""

_OF_ARGUMENTS = (
    "copyto", "fill_diagonal", "itemset", "partition", "place", "put", "put_along_axis", "putmask", "resize",
    "setflags",
)  # fmt: skip
"""Functions of NumPy that change an array which they are given, and methods that change their own."""
_SOUNDS_RANDOM = ("augment", "jitter")
_BEGINS_RANDOM = ("random", "rand_")
_LIBRARIES = ("numpy", "torch")

TORCH_CONTEXTS = ("no_grad", "inference_mode", "autocast")
"""Contexts that only set how torch computes, by the last part of their name."""


def _by_name(table: dict[Effect, str]) -> dict[str, Effect]:
    effects: dict[str, Effect] = {}
    for effect, names in table.items():
        for name in names.split():
            effects[name] = effects.get(name, Effect.NONE) | effect
    return effects


_OF_BUILTIN, _OF_LAST = _by_name(_BUILTINS), _by_name(_LAST)


def effect_of(name: str) -> Effect:
    """What a call may do, from the qualified name of what it calls, or from ``.method`` where no more is known."""
    head, _, last = name.rpartition(".")
    if head == "builtins":
        return _OF_BUILTIN.get(last, Effect.NONE)
    effect = _OF_LAST.get(last, Effect.NONE)
    for module, of_module in _MODULES.items():
        if head == module or head.startswith(module + "."):
            effect |= of_module
    if head.partition(".")[0] in _LIBRARIES and "shuffle" not in last:
        effect |= Effect.READS
    low = last.lower()
    if low.startswith(_BEGINS_RANDOM) or any(word in low for word in _SOUNDS_RANDOM):
        effect |= Effect.RANDOM
    return effect


def is_in_place(name: str) -> bool:
    """Whether torch's naming says that a method changes the tensor that it is called of: ``mul_``."""
    last = name.rpartition(".")[2]
    return last.endswith("_") and not last.endswith("__")


def changes_argument(name: str) -> bool:
    """Whether a function of torch or NumPy changes what it is given first, or a method the object that it is of."""
    return is_in_place(name) or name.rpartition(".")[2] in _OF_ARGUMENTS


def may_differ(name: str) -> bool:
    """Whether a call may give something else every time: random numbers, the time."""
    return bool(effect_of(name) & (Effect.RANDOM | Effect.CLOCK))


def named(table: dict[str, str]) -> frozenset[str]:
    """Qualified names, from modules (or '' for none) and the names in each, with spaces between."""
    return frozenset(f"{module}.{name}".lstrip(".") for module, names in table.items() for name in names.split())
