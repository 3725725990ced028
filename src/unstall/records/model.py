"""What a model is and does in a step, as it was measured.

Times are seconds a step; shares are of 1.
"""

from __future__ import annotations

import msgspec

from unstall.records.observations import Frame


class ModelMeasurement(msgspec.Struct, frozen=True):
    """What the model is and does in a step."""

    root: str = ""
    file: str = ""
    line: int = 0
    dtype: str = ""
    device: str = ""
    parameters: int = 0
    gradients: int = 0
    """Elements that backward computes for the model's parameters; 0 where that is not known."""
    updated: int = 0
    """Those of them that an optimizer uses."""
    idle_parts: tuple[str, ...] = ()
    """Parts of the model none of whose gradients is used."""
    padding: float = 0.0
    """Share of the positions of a batch of sequences, of its shorter rows."""
    spare: float = 0.0
    """Share of the positions that are padding in every row, the longest included."""
    dropped: DroppedGradients | None = None
    threads: int = 0
    compiled: bool = False
    anomaly: bool = False
    """Whether autograd's anomaly detection was on while its operators were looked at."""
    batch_size: int | None = None
    sample: str = ""
    """The shape of one sample, as 3×224×224; empty where it is not known or varies."""
    forwards: float = 0.0
    """Outermost calls of the main module in a step."""
    flops: float | None = None
    ops: float | None = None
    written_bytes: float | None = None
    """Bytes that the model's operators write in a step."""
    flops_coverage: float | None = None
    peak_flops: float | None = None
    """This machine's peak in single precision, FLOP a second."""

    @property
    def on_gpu(self) -> bool:
        """Whether it is on a GPU."""
        return self.device.startswith("cuda")

    @property
    def unused_gradients(self) -> float:
        """Share of the gradients, in elements, that no optimizer uses; 0 where that is not known."""
        return 1 - self.updated / self.gradients if self.gradients else 0.0

    @property
    def wasted_backward(self) -> float:
        """Share of backward whose gradients no optimizer uses, or that are dropped before one does."""
        return max(self.unused_gradients, self.dropped.share if self.dropped is not None else 0.0)


class OperatorLine(msgspec.Struct, frozen=True):
    """The operators that a line of the program calls, in a few early cycles of the loop, without the calling itself.

    Seconds are of the thread's CPU time.
    """

    frames: tuple[Frame, ...]
    """The program's, outermost first; empty for what is of no line, the adding up of a parameter's gradients say."""
    forward_s: float
    backward_s: float
    """Of their gradients."""
    node: str = ""
    """What takes the most of that, as autograd calls it."""
    again_s: float = 0.0
    """Of operators that were given what they were given before."""
    calls: int = 0
    """Of operators in forward."""
    operator: str = ""
    """Of these the one that takes the most of ``forward_s``, as torch calls it."""
    per_step: float = 0.0
    """How often a measured step does what was looked at; 0 where that is not known."""

    @property
    def forward_per_step(self) -> float:
        """Seconds a step."""
        return self.forward_s * self.per_step


class DroppedGradients(msgspec.Struct, frozen=True):
    """Gradients of a model that one optimizer's backward computes, and that its own one never uses, if it has any."""

    frames: tuple[Frame, ...]
    """The way to the call that leads to the model, outermost first."""
    model: str
    """Its class."""
    share: float
    """Of backward's time."""
    never: bool = False
    """Whether no optimizer steps for the model at all; else they are dropped before that."""


class Recomputation(msgspec.Struct, frozen=True):
    """What operators compute again in a step, though they have computed it before from the same contents."""

    frames: tuple[Frame, ...]
    """The way to the outermost call that computes nearly nothing else, outermost first."""
    there: float
    """Share of the time below that is in the function of the last of these frames."""
    seconds: float
    """A step, of the thread's CPU time, without the calling itself."""
    operators: float
    """A step."""
    backward_s: float
    """A step, of their gradients."""
    share: float
    """Of the time of all operators, their gradients' included."""
    recurring: float
    """Share of all that was computed that is computed more than once, the first time too."""


class ZeroProducts(msgspec.Struct, frozen=True):
    """Multiplications by zeros, of the operators of a few early cycles of the loop."""

    frames: tuple[Frame, ...]
    """The way to the line that has most of them, outermost first."""
    zeros: float
    """Share of that line's products, forward or backward, that is by zeros."""
    of_gradients: bool
    """Whether the zeros of that line are rows of its gradient, on which no loss depends."""
    forward: float
    """Share of forward's time that all such lines multiply by zeros, or compute what no loss depends on."""
    backward: float
    """The same of backward's time."""


class FrozenPart(msgspec.Struct, frozen=True):
    """The largest part of a model that learns nothing and is called before all that learns, in training."""

    name: str
    """Empty where it is a model that is called for itself."""
    type: str
    file: str
    line: int
    share: float
    """Of the time of the models' calls, that all such parts take."""


class ModuleMeasurement(msgspec.Struct, frozen=True):
    """One module's forward, from the early steps in which every module call is recorded."""

    name: str
    type: str
    file: str
    line: int
    calls: float
    forward_s: float
    self_s: float
    """Without the modules inside it."""
    children: int
    detail: str = ""
    """The settings of a module of torch's, or of one derived from it, as torch words them."""
