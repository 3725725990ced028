"""Results of a model's layers and methods, kept as long as what they were computed from is bit for bit the same."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch

from unstall.optimize.runtime.same_bits import _have_same_bits


class _KeptResults:
    """The latest result of each, with copies of what it was computed from; on the CPU, without gradients."""

    latest: ClassVar[Any] = weakref.WeakKeyDictionary()
    """By module, then by name: (copies of the inputs, the result, its version)."""
    layers: ClassVar[Any] = (
        torch.nn.Linear,
        torch.nn.Conv1d,
        torch.nn.Conv2d,
        torch.nn.Conv3d,
        torch.nn.LayerNorm,
        torch.nn.GroupNorm,
        torch.nn.Embedding,
    )
    """What computes from its input and its parameters alone."""

    @classmethod
    def of_layer(cls, layer: Any, value: Any) -> Any:
        """``layer(value)``, where it is one of torch's own layers that nobody looks into."""
        hooks = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
        if type(layer) not in cls.layers or hooks or torch.nn.modules.module._has_any_global_hook():
            return layer(value)
        return cls.of(layer, "", [value, *layer.parameters()], lambda: layer(value))

    @classmethod
    def of(cls, module: Any, name: str, inputs: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """What ``compute`` returns, which depends on the inputs alone."""
        if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu") or not all(map(cls._is_plain, inputs)):
            return compute()
        kept = cls.latest.setdefault(module, {})
        before, result, version = kept.get(name, ((), None, 0))
        if before and result._version == version and cls._are_same(before, inputs):
            return result
        if not torch.is_inference_mode_enabled():
            result = compute()
        else:  # where a result has no version that tells whether it was written to
            with torch.inference_mode(False), torch.no_grad():
                result = compute()
        kept.pop(name, None)
        if type(result) is torch.Tensor and not result.requires_grad:
            copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in inputs]
            kept[name] = copies, result, result._version
        return result

    @staticmethod
    def _is_plain(value: Any) -> bool:
        """Whether a value can be compared bit for bit, and has no gradient."""
        if not isinstance(value, torch.Tensor):
            return value is None or type(value) in (bool, int, float, str, torch.dtype)
        return (
            type(value) in (torch.Tensor, torch.nn.Parameter)
            and value.device.type == "cpu"
            and value.layout is torch.strided
            and value.is_contiguous()
            and not (value.is_quantized or value.is_conj() or value.is_neg())
            and not (value.requires_grad and torch.is_grad_enabled())
        )

    @classmethod
    def _are_same(cls, before: Sequence[Any], inputs: Sequence[Any]) -> bool:
        return len(before) == len(inputs) and all(map(_have_same_bits, before, inputs))


def _kept_results(*names: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """For a method that computes from these attributes of its module alone."""

    def decorate(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(method)
        def kept(self: Any) -> Any:
            inputs = [getattr(self, name) for name in names]
            return _KeptResults.of(self, method.__name__, inputs, lambda: method(self))

        return kept

    return decorate
