"""Parts of a model that learn nothing: what they compute of a sample is the same each time. Runs in the user's process.

Parts whose weights change in another way, as those of a moving average do, are none; nor are parts that are made like
one that learns, of which they may be a copy that is renewed now and then; nor those that draw random numbers or change
with each batch, as dropout and batch normalization do in training.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from unstall.child import gradients, reading

LEARNS, FROZEN = "learns", "frozen"
"""Of a module: it has parameters of its own that an optimizer updates; or neither it nor any module in it learns."""

_RANDOM = ("Dropout", "BatchNorm", "RReLU")
"""Beginnings of the names of torch's classes that compute something else each time, in training."""


def versions(roots: Iterable[Any]) -> dict[int, int]:
    """How often each parameter was written to so far, by its address."""
    version = sys.modules["torch"].Tensor._version
    with reading.unobserved():
        return {id(each): version.__get__(each) for root in roots for each in reading.parameters(root)}


def states(roots: Iterable[Any], optimizers: Iterable[Any], earlier: Mapping[int, int]) -> dict[int, str]:
    """``LEARNS`` or ``FROZEN`` by the address of a module; of the others nothing.

    Args:
        roots: the models that are called in a step.
        optimizers: all that step.
        earlier: ``versions`` of some steps ago.
    """
    with reading.unobserved():
        known = {id(parameter) for each in optimizers for parameter in gradients.given(each)}
        found = _States(known, earlier)
        for root in roots:
            found.look(root)
        return found.states()


class _Look(NamedTuple):
    made: tuple[type, tuple[Any, ...]]
    """Class, and the shapes of all parameters in it."""
    learns: bool
    """Whether an optimizer updates any of these."""
    stays: bool
    """Whether all of it stays the same."""


class _States:
    def __init__(self, known: set[int], earlier: Mapping[int, int]):
        self._known, self._earlier = known, earlier
        self._version = sys.modules["torch"].Tensor._version
        self._learning: set[int] = set()
        self._seen: dict[int, _Look] = {}

    def states(self) -> dict[int, str]:
        """Of all that was looked at; nothing where nothing learns."""
        made_alike = {look.made for look in self._seen.values() if look.learns}
        frozen = (
            key for key, look in self._seen.items() if look.stays and look.made[1] and look.made not in made_alike
        )
        return {**dict.fromkeys(self._learning, LEARNS), **dict.fromkeys(frozen, FROZEN)} if made_alike else {}

    def look(self, module: Any) -> _Look:
        """At a module and all in it."""
        if id(module) in self._seen:
            return self._seen[id(module)]
        self._seen[id(module)] = _Look((type(module), ()), learns=False, stays=False)  # of one that holds itself
        own = reading.own_parameters(module)
        inside = [self.look(child) for _, child in reading.children(module)]
        learns = any(id(parameter) in self._known for parameter in own)
        if learns:
            self._learning.add(id(module))
        shapes = [*map(reading.shape, own), *(shape for each in inside for shape in each.made[1])]
        look = self._seen[id(module)] = _Look(
            (type(module), tuple(shapes)),
            learns=learns or any(each.learns for each in inside),
            stays=not _is_random(module) and all(map(self._stays, own)) and all(each.stays for each in inside),
        )
        return look

    def _stays(self, parameter: Any) -> bool:
        unchanged = self._earlier.get(id(parameter)) == self._version.__get__(parameter)
        return unchanged and id(parameter) not in self._known


def _is_random(module: Any) -> bool:
    training = bool(reading.attributes(module).get("training"))
    own = (kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn."))
    return training and any(part in kind.__name__ for kind in own for part in _RANDOM)
