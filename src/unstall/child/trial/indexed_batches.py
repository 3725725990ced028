"""A batch that a patch indexes at once must be what torch's collate makes of its samples, made one by one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from unstall.child import trial
from unstall.child.trial import seed
from unstall.child.trial.observe import facts

if TYPE_CHECKING:
    from unstall.child.trial.check import Report


def check_class(cls: Any, report: Report) -> None:
    """Have each batch of the class compared; ``report`` gets a line where one differs."""
    original = cls.collated

    def collated(self: Any) -> Any:
        batch = original(self)
        with trial.Unseen(), seed.Generators():
            data = sys.modules["torch.utils.data"]
            one_by_one = data.default_collate([self.dataset[index] for index in self.indices])
        if described(batch) != described(one_by_one):
            report("a batch that is indexed at once is not what its samples give")
        return batch

    cls.collated = collated


def described(value: Any) -> Any:
    """All that is in a batch: containers, data types, shapes, strides of what has several elements, bytes."""
    torch: Any = sys.modules["torch"]
    kind = type(value).__qualname__
    if isinstance(value, torch.Tensor):
        strides = [stride for stride, size in zip(value.stride(), value.shape) if size > 1]
        return kind, facts(value)[:3], strides, str(value.device), value.requires_grad
    if isinstance(value, dict):
        return kind, [(key, described(inner)) for key, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return kind, [described(inner) for inner in value]
    return kind, repr(value)
