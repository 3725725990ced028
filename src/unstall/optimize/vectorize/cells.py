"""Where a loop reads and writes its cells: images, nested lists and arrays, by the loop's own variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.source.module import dotted, number_of
from unstall.optimize.vectorize.syntax import indices, names_in, source


@dataclass(frozen=True)
class Axis:
    """One level of the nest: its variable, and the range it runs over, as source."""

    variable: str
    begin: cst.BaseExpression
    end: cst.BaseExpression

    @property
    def names(self) -> list[str]:
        """The names that the range is worked out from."""
        return names_in(self.begin, self.end)

    def slice(self, offset: int) -> str:
        """The slice of a list's or an array's axis that the variable plus an offset runs over."""
        begin = _shifted(self.begin, offset)
        if begin.startswith("-"):
            raise AnalysisRefused("it reads cells before the first one")
        return f"{'' if begin == '0' else begin}:{_shifted(self.end, offset)}"

    def values(self, numpy: str) -> str:
        """The variable's values."""
        begin = source(self.begin)
        return f"{numpy}.arange({source(self.end)})" if begin == "0" else f"{numpy}.arange({begin}, {source(self.end)})"


def _shifted(node: cst.BaseExpression, offset: int) -> str:
    """``node + offset``, worked out where it is a number or ends in one."""
    if isinstance(node, cst.Integer):
        return str(node.evaluated_value + offset)
    base, last = _with_offset(node) or (node, 0)
    total = last + offset
    if not total:
        return source(base)
    return source(cst.parse_expression(f"({source(base)}) {'+' if total > 0 else '-'} {abs(total)}"))


def _with_offset(node: cst.BaseExpression) -> tuple[cst.BaseExpression, int] | None:
    """(i, 2) of ``i + 2``."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, (cst.Add, cst.Subtract)):
        return None
    number = number_of(node.right)
    if not isinstance(number, int):
        return None
    return node.left, number if isinstance(node.operator, cst.Add) else -number


@dataclass(frozen=True)
class Cell:
    """One place that reads or writes a cell: which object, how, and each axis's offset in the order of the nest."""

    base: str
    kind: str
    """image, list or array."""
    offsets: tuple[int, ...]
    order: tuple[int, ...]
    """Axis of the nest for each axis of the object as an array (rows first)."""


@dataclass
class Cells:
    """Recognises cells, for the variables of a nest. ``pixels``: names of ``image.load()`` → the image."""

    axes: list[Axis]
    pixels: dict[str, str] = field(default_factory=dict)
    arrays: dict[tuple[str, str], str] = field(default_factory=dict)
    """Names of arrays that were made of a list or an image, by (base, kind)."""

    def of(self, node: cst.CSTNode) -> Cell | None:
        """The cell that a node is, if it is one."""
        if isinstance(node, cst.Call):
            return self._image(node, "getpixel", 1)
        found: list[Any] = []
        base, nested = node, 0
        while isinstance(base, cst.Subscript):
            found, base, nested = [*indices(base), *found], base.value, nested + 1
        positions = [position for position in map(self.index, found) if position is not None]
        name = dotted(base)
        if not found or not name or not len(positions) == len(found) == len(self.axes):
            return None
        if name in self.pixels:
            return self._cell(self.pixels[name], "image", positions[::-1])
        return self._cell(name, "list" if nested > 1 or len(positions) == 1 else "array", positions)

    def put(self, node: cst.CSTNode) -> tuple[Cell, cst.BaseExpression] | None:
        """(cell, value) of ``image.putpixel((x, y), value)``."""
        cell = self._image(node, "putpixel", 2) if isinstance(node, cst.Call) else None
        return (cell, node.args[1].value) if cell else None  # type: ignore[attr-defined]

    def index(self, node: cst.BaseExpression) -> tuple[int, int] | None:
        """(axis, offset) of an index that is a variable of the nest plus or minus a number."""
        variables = [axis.variable for axis in self.axes]
        variable, offset = _with_offset(node) or (node, 0)
        name = variable.value if isinstance(variable, cst.Name) else ""
        return (variables.index(name), offset) if name in variables else None

    def _image(self, call: cst.Call, method: str, arguments: int) -> Cell | None:
        """The cell at the position that a method of an image is given."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != method or len(call.args) != arguments:
            return None
        corner = [part.value for part in getattr(call.args[0].value, "elements", ())]
        positions = [position for position in map(self.index, corner) if position is not None]
        if not len(positions) == len(corner) == len(self.axes) == 2:
            return None
        return self._cell(source(call.func.value), "image", positions[::-1])

    def _cell(self, base: str, kind: str, positions: list[tuple[int, int]]) -> Cell | None:
        order = tuple(axis for axis, _ in positions)
        if sorted(order) != list(range(len(self.axes))):
            return None
        return Cell(base, kind, tuple(offset for _, offset in positions), order)

    def read(self, cell: Cell, numpy: str, channels: int | None) -> cst.BaseExpression:
        """The array of a cell's values over the whole nest, one axis a level."""
        text = self.arrays.get((cell.base, cell.kind)) or _array_of(cell, numpy)
        text += self._slices(cell)
        if cell.order != tuple(range(len(self.axes))):
            text = f"{numpy}.swapaxes({text}, 0, 1)"
        if channels is not None:
            text = f"{numpy}.moveaxis({text}, -1, 0)"
        return cst.parse_expression(text)

    def name_array(self, cell: Cell, name: str, numpy: str) -> str:
        """The statement that makes an array of a cell's whole list or image, which is read by its name from now on."""
        line = f"{name} = {_array_of(cell, numpy)}"
        self.arrays[cell.base, cell.kind] = name
        return line

    def write(self, cell: Cell, values: list[tuple[str, bool]], numpy: str, image: str | None) -> list[str]:
        """Statements that write the nest's values into the object, in place.

        ``values``: the source of each channel's array, and whether it surely has the shape of the whole nest.
        """
        if any(cell.offsets):
            raise AnalysisRefused(f"it writes another turn's cell of {cell.base}")
        shape = ", ".join(_length(axis) for axis in self.axes) + ("," if len(self.axes) == 1 else "")
        parts = [text if full else f"{numpy}.broadcast_to({text}, ({shape}))" for text, full in values]
        if cell.kind == "image":
            return self._write_image(cell, parts, numpy, image)
        values_in_order = self._turned(cell, parts[0], numpy)
        if cell.kind == "array":
            return [f"{cell.base}{self._slices(cell) or '[...]'} = {values_in_order}"]
        if len(self.axes) != 2:
            return [f"{cell.base}[{self.axes[0].slice(0)}] = ({values_in_order}).tolist()"]
        rows, columns = (self.axes[axis] for axis in cell.order)
        return [
            f"for row, values in zip({cell.base}[{rows.slice(0)}], ({values_in_order}).tolist()):",
            f"    row[{columns.slice(0)}] = values",
        ]

    def _write_image(self, cell: Cell, channels: list[str], numpy: str, image: str | None) -> list[str]:
        if image is None:
            raise AnalysisRefused("PIL's Image is not imported under a name of its own")
        corner = [source(self.axes[axis].begin) for axis in reversed(cell.order)]
        where = "" if corner == ["0", "0"] else f", ({', '.join(corner)})"
        lines, pixels = [], f"({self._turned(cell, channels[0], numpy)})"
        if len(channels) > 1:
            lines = ["pixel_channels = [", *(f"    {self._turned(cell, channel, numpy)}," for channel in channels), "]"]
            pixels = f"{numpy}.stack(pixel_channels, axis=-1)"
        # putpixel clips what is outside of a byte, so this does.
        lines.append(f"pixels_array = {pixels}.clip(0, 255).astype({numpy}.uint8)")
        return [*lines, f"{cell.base}.paste({image}.fromarray(pixels_array){where})"]

    def _turned(self, cell: Cell, array: str, numpy: str) -> str:
        """An array with the object's axes, which may be those of the nest in another order."""
        return array if cell.order == tuple(range(len(self.axes))) else f"{numpy}.swapaxes({array}, 0, 1)"

    def _slices(self, cell: Cell) -> str:
        """``[begin:end, ...]``, or nothing where an image is read as a whole."""
        axes = [self.axes[axis] for axis in cell.order]
        if cell.kind == "image" and not any(cell.offsets):
            ends = [source(axis.end) for axis in axes]
            sizes = ([f"{name}.height", f"{name}.width"] for name in {cell.base, ends[0].rpartition(".")[0]})
            if all(source(axis.begin) == "0" for axis in axes) and ends in list(sizes):
                return ""
        return f"[{', '.join(axis.slice(offset) for axis, offset in zip(axes, cell.offsets))}]"


def _array_of(cell: Cell, numpy: str) -> str:
    if cell.kind == "image":
        return f"{numpy}.asarray({cell.base}, dtype={numpy}.int64)"
    return cell.base if cell.kind == "array" else f"{numpy}.asarray({cell.base})"


def _length(axis: Axis) -> str:
    begin = source(axis.begin)
    return source(axis.end) if begin == "0" else f"{source(axis.end)} - {begin}"
