"""Small programs, and changes of them that are or are not more than rounding: for tests and `make sameness-bench`.

Each program trains for some steps with what :class:`Choices` says, and gives what ``unstall optimize`` would observe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from unstall.child.trial.observe import WEIGHT_STEPS, facts
from unstall.child.trial.perturb import Perturbation
from unstall.optimize.sameness import ObservedTensor

STEPS = 12
BATCH = 32


@dataclass(frozen=True)
class Choices:
    """How a program computes: the original's choices, of which a change replaces some."""

    lr: float = 1e-3
    weight_decay: float = 0.0
    eps: float = 1e-8
    optimizer: str = "adam"
    implementation: Mapping[str, bool] = field(default_factory=lambda: {"foreach": False})
    bias_correction: bool = True
    clip: float = 0.0
    smoothing: float = 0.0
    momentum: float = 0.1
    """Of batch normalisation."""
    dropout: float = 0.0
    autocast: Any = None
    threads: int = 1
    parts: int = 1
    """Into which a product's sum is split."""
    one_by_one: bool = False
    """The model is called for each item alone."""
    attention: str = "naive"
    memory_format: Any = torch.contiguous_format
    tf32: bool = False
    """Products of numbers with 10 bits, as NVIDIA's tensor cores have them."""
    norm_eps: float = 1e-5
    """Of layer normalisation."""


def as_tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits, with the gradient of the identity."""
    rounded = ((x.detach().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
    return x + (rounded - x.detach())


class SplitLinear(nn.Linear):
    """A linear layer whose sum is added up in parts, in the opposite order."""

    def __init__(self, width: int, out: int, choices: Choices):
        super().__init__(width, out)
        self.parts, self.tf32 = choices.parts, choices.tf32

    def forward(self, x):
        if self.tf32:
            return F.linear(as_tf32(x), as_tf32(self.weight), self.bias)
        if self.parts == 1:
            return F.linear(x, self.weight, self.bias)
        pieces = zip(x.chunk(self.parts, -1), self.weight.chunk(self.parts, -1))
        return sum([piece @ weight.T for piece, weight in reversed(list(pieces))]) + self.bias


class MLP(nn.Sequential):
    def __init__(self, choices: Choices):
        super().__init__(
            SplitLinear(64, 128, choices), nn.ReLU(), nn.Dropout(choices.dropout),
            SplitLinear(128, 128, choices), nn.ReLU(), SplitLinear(128, 10, choices),
        )  # fmt: skip


class CNN(nn.Sequential):
    def __init__(self, choices: Choices):
        super().__init__(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16, momentum=choices.momentum), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32, momentum=choices.momentum), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(choices.dropout), SplitLinear(32, 10, choices),
        )  # fmt: skip


class PoolingCNN(nn.Sequential):
    """With max-pooling: where two numbers are nearly equal, rounding tips over which one gets the gradient."""

    def __init__(self, choices: Choices):
        widths = (3, 16, 32, 64)
        blocks = [
            layer
            for before, width in pairwise(widths)
            for layer in (nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        ]
        super().__init__(*blocks, nn.Flatten(), SplitLinear(64 * 4 * 4, 10, choices))


class GRU(nn.Module):
    def __init__(self, choices: Choices):
        super().__init__()
        self.rnn = nn.GRU(16, 48, batch_first=True)
        self.drop = nn.Dropout(choices.dropout)
        self.head = SplitLinear(48, 10, choices)

    def forward(self, x):
        return self.head(self.drop(self.rnn(x)[0][:, -1]))


class Transformer(nn.Module):
    """Two blocks over tokens."""

    def __init__(self, choices: Choices):
        super().__init__()
        self.embed = nn.Embedding(200, 64)
        self.blocks = nn.ModuleList(Block(choices) for _ in range(2))
        self.head = SplitLinear(64, 10, choices)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Block(nn.Module):
    def __init__(self, choices: Choices):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(64, choices.norm_eps), nn.LayerNorm(64, choices.norm_eps)
        self.qkv, self.out = SplitLinear(64, 192, choices), SplitLinear(64, 64, choices)
        self.up, self.down = SplitLinear(64, 128, choices), SplitLinear(128, 64, choices)
        self.drop = nn.Dropout(choices.dropout)
        self.attention = choices.attention

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        if self.attention == "naive":
            mixed = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(width // 4), -1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class WrittenAdam(torch.optim.Optimizer):
    """Adam as the paper has it, with or without its bias correction."""

    def __init__(self, params, *, lr: float, eps: float, bias_correction: bool):
        super().__init__(params, {"lr": lr, "eps": eps, "correct": bias_correction})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * p.grad
                v = state["v"] = 0.999 * state.get("v", 0.0) + 0.001 * p.grad**2
                if group["correct"]:
                    m, v = m / (1 - 0.9**t), v / (1 - 0.999**t)
                p -= group["lr"] * m / (v.sqrt() + group["eps"])


@dataclass(frozen=True)
class Program:
    """A model, what its batches are like, and how it is trained."""

    name: str
    model: Callable[[Choices], nn.Module]
    shape: tuple[int, ...]
    choices: Choices
    tokens: int = 0
    seed: int = 0
    """Of its weights and batches."""

    def batch(self, step: int):
        generator = torch.Generator().manual_seed(1000 * (self.seed + 1) + step)
        if self.tokens:
            x = torch.randint(self.tokens, (BATCH, *self.shape), generator=generator)
        else:
            x = torch.randn(BATCH, *self.shape, generator=generator)
        return x, torch.randint(10, (BATCH,), generator=generator)

    def optimizer(self, model: nn.Module, choices: Choices) -> torch.optim.Optimizer:
        if choices.optimizer == "written":
            return WrittenAdam(
                model.parameters(), lr=choices.lr, eps=choices.eps, bias_correction=choices.bias_correction
            )
        given = {"lr": choices.lr, "weight_decay": choices.weight_decay, **choices.implementation}
        if choices.optimizer == "sgd":
            return torch.optim.SGD(model.parameters(), momentum=0.9, **given)
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[choices.optimizer]
        return kind(model.parameters(), eps=choices.eps, **given)

    def run(self, *, seed: int | None = None, steps: int = STEPS, **changed: Any) -> list[ObservedTensor]:
        """What ``steps`` steps compute; ``seed``: perturbed with it; ``changed``: choices other than the original's."""
        before = torch.get_num_threads()
        choices = replace(self.choices, **changed)
        torch.set_num_threads(choices.threads)
        try:
            return self._run(choices, seed, steps)
        finally:
            torch.set_num_threads(before)

    def _run(self, choices: Choices, seed: int | None, steps: int) -> list[ObservedTensor]:
        torch.manual_seed(self.seed)
        model = self.model(choices).to(memory_format=choices.memory_format)
        optimizer = self.optimizer(model, choices)
        perturbation = Perturbation(seed) if seed is not None else None
        if perturbation:
            perturbation.weights(model.parameters())
        observed = weights_of(model, 0)
        for step in range(steps):
            x, y = self.batch(step)
            if x.dim() == 4:
                x = x.contiguous(memory_format=choices.memory_format)
            if perturbation:
                x = perturbation.inputs(x)
            with torch.autocast("cpu", dtype=choices.autocast, enabled=choices.autocast is not None):
                out = torch.cat([model(item[None]) for item in x]) if choices.one_by_one else model(x)
                loss = F.cross_entropy(out, y, label_smoothing=choices.smoothing)
            optimizer.zero_grad()
            loss.backward()
            if choices.clip:
                nn.utils.clip_grad_norm_(model.parameters(), choices.clip)
            optimizer.step()
            observed += [ObservedTensor("output.0", step, *facts(out)), ObservedTensor("loss.0", step, *facts(loss))]
            if step + 1 in WEIGHT_STEPS or step + 1 == steps:
                observed += weights_of(model, step + 1)
        return observed

    def close_changes(self) -> dict[str, dict[str, Any]]:
        """Changes that are no more than rounding, by name."""
        own = self.choices
        changes: dict[str, dict[str, Any]] = {
            "sums in 4 parts": {"parts": 4},
            "sums in 16 parts": {"parts": 16},
            "2 threads": {"threads": 2},
            "foreach optimizer": {"implementation": {"foreach": True}},
            "fused optimizer": {"implementation": {"fused": True}},
        }
        if own.optimizer == "adam":
            changes["Adam written out"] = {"optimizer": "written"}
        if self.model not in (CNN, PoolingCNN) and not own.dropout:
            changes["item by item"] = {"one_by_one": True}
        if self.model in (CNN, PoolingCNN):
            changes["channels last"] = {"memory_format": torch.channels_last}
        if self.model is Transformer:
            changes["fused attention"] = {"attention": "fused"}
        return changes

    def reduced_changes(self) -> dict[str, dict[str, Any]]:
        """Changes that are more than rounding, by name."""
        own = self.choices
        changes: dict[str, dict[str, Any]] = {
            "bfloat16 autocast": {"autocast": torch.bfloat16},
            "float16 autocast": {"autocast": torch.float16},
            "TF32 products": {"tf32": True},
            "label smoothing": {"smoothing": 0.0 if own.smoothing else 0.1},
            "lr + 0.1 %": {"lr": own.lr * 1.001},
        }
        if own.optimizer.startswith("adam"):
            changes |= {"eps 1e-6": {"eps": 1e-6}, "eps 1e-5": {"eps": 1e-5}}
        if own.optimizer == "adam":
            changes["no bias correction"] = {"optimizer": "written", "bias_correction": False}
        if own.weight_decay:
            changes[f"no weight decay of {own.weight_decay:g}"] = {"weight_decay": 0.0}
        if own.clip:
            changes["no clipping"] = {"clip": 0.0}
        if own.dropout:
            changes["no dropout"] = {"dropout": 0.0}
        if self.model is CNN:
            changes["momentum of batch norm 0.2"] = {"momentum": 0.2}
        if self.model is Transformer:
            changes["eps of layer norm 1e-6"] = {"norm_eps": 1e-6}
        return changes


def weights_of(model: nn.Module, step: int) -> list[ObservedTensor]:
    return [
        ObservedTensor(f"weights.0.{name}.0", step, *facts(tensor))
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    ]


def pooling(seed: int) -> list[Program]:
    """Programs in which rounding tips positions over, with other weights and batches for each seed."""
    return [
        Program("CNN, max-pooling, SGD", PoolingCNN, (3, 32, 32), Choices(optimizer="sgd", lr=0.05), seed=seed),
        Program("CNN, max-pooling, Adam", PoolingCNN, (3, 32, 32), Choices(), seed=seed),
    ]


def corpus() -> list[Program]:
    """The programs."""
    return [
        Program("MLP, Adam", MLP, (64,), Choices()),
        Program("MLP, SGD, decay", MLP, (64,), Choices(optimizer="sgd", lr=0.05, weight_decay=1e-4)),
        Program("MLP, AdamW, decay", MLP, (64,), Choices(optimizer="adamw", weight_decay=1e-4)),
        Program("CNN, SGD, clipped", CNN, (3, 16, 16), Choices(optimizer="sgd", lr=0.05, weight_decay=1e-4, clip=0.5)),
        Program("CNN, Adam", CNN, (3, 16, 16), Choices()),
        Program("GRU, Adam, clipped", GRU, (20, 16), Choices(clip=0.1)),
        Program(
            "GRU, AdamW, decay, dropout", GRU, (20, 16), Choices(optimizer="adamw", weight_decay=1e-2, dropout=0.1)
        ),
        Program(
            "transformer, AdamW, decay", Transformer, (24,), Choices(optimizer="adamw", weight_decay=1e-2), tokens=200
        ),
        Program("transformer, Adam, dropout", Transformer, (24,), Choices(dropout=0.1, smoothing=0.1), tokens=200),
    ]
