"""What a program made while it ran: its loaders, optimizers and models, as the child's ``probe`` wrote them down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from unstall.optimize.source.places import CallSite


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    call: CallSite | None = msgspec.field(default=None, name="site")
    """The call in the user's code that made it, or that it is; None when no code of the user's did."""


class ObservedLoader(_Fact, frozen=True, kw_only=True, tag="loader"):
    """A DataLoader that the program made."""

    id: int = 0
    num_workers: int = 0
    batch_size: int | None = None
    persistent_workers: bool = False
    map_style: bool = True
    dataset: str = ""
    """The class of the dataset inside the library's own wrappers."""
    getitem_file: str | None = None
    getitem_line: int | None = None
    """The line on which its ``__getitem__`` begins, decorators included."""
    attributes: dict[str, str] = {}
    """Type names of the dataset's attributes; of None, True and False these names."""
    collates_by_default: bool = False
    """Whether its collate is torch's own."""


class ObservedOptimizer(_Fact, frozen=True, kw_only=True, tag="optimizer"):
    """An optimizer that the program made."""

    type: str = ""
    module: str = ""
    fused: bool | None = None
    foreach: bool | None = None


class ObservedModelCall(_Fact, frozen=True, kw_only=True, tag="model"):
    """A call of a model from outside of any model, one for each place and a few shapes."""

    callers: tuple[CallSite, ...] = ()
    """The program's own frames above it, the nearest first."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """The shapes of the tensors and arrays that it is given."""
    bytes: int = 0
    """The bytes of these together."""


class _Iterated(_Fact, frozen=True, kw_only=True, tag="iterated"):
    id: int


class _ThreadSetting(_Fact, frozen=True, kw_only=True, tag="threads"):
    pass


class _Torch(_Fact, frozen=True, kw_only=True, tag="torch"):
    threads: int


@dataclass(frozen=True)
class RuntimeFacts:
    """What the program made while it ran."""

    loaders: tuple[ObservedLoader, ...] = ()
    """The loaders that were iterated, in the order in which they first were."""
    optimizers: tuple[ObservedOptimizer, ...] = ()
    thread_settings: tuple[CallSite, ...] = ()
    """Calls of torch.set_num_threads."""
    model_calls: tuple[ObservedModelCall, ...] = ()
    threads: int | None = None
    """Threads of torch's operators when it was imported."""


def read_runtime_facts(path: Path) -> RuntimeFacts:
    """What the child side wrote; nothing where it cannot be read."""
    try:
        facts = [_decoder.decode(line) for line in path.read_bytes().splitlines()]
    except (OSError, msgspec.DecodeError):
        facts = []
    loaders = {fact.id: fact for fact in facts if isinstance(fact, ObservedLoader)}
    iterated = dict.fromkeys(fact.id for fact in facts if isinstance(fact, _Iterated))
    return RuntimeFacts(
        loaders=tuple(loaders[id] for id in iterated if id in loaders),
        optimizers=tuple(fact for fact in facts if isinstance(fact, ObservedOptimizer)),
        model_calls=tuple(fact for fact in facts if isinstance(fact, ObservedModelCall)),
        thread_settings=tuple(fact.call for fact in facts if isinstance(fact, _ThreadSetting) and fact.call),
        threads=next((fact.threads for fact in facts if isinstance(fact, _Torch)), None),
    )


def _to_path(kind: type[Any], value: str) -> Any:
    return kind(value)


_decoder = msgspec.json.Decoder(
    ObservedLoader | ObservedOptimizer | ObservedModelCall | _Iterated | _ThreadSetting | _Torch, dec_hook=_to_path
)
