"""Where a loop reads and writes its cells: images, nested lists and arrays, by the loop's own variables."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from unstall.optimize.source.errors import AnalysisRefused
from unstall.optimize.vectorize.blocks import source


@dataclass(frozen=True)
class Axis:
    """One level of the nest: its variable, and the range it runs over, as source."""

    variable: str
    begin: ast.expr
    end: ast.expr

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


def _shifted(node: ast.expr, offset: int) -> str:
    """``node + offset``, worked out where it is a number or ends in one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value + offset)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        last = _integer(node.right)
        if last is not None:
            total = (last if isinstance(node.op, ast.Add) else -last) + offset
            base_text = source(node.left)
            return base_text if not total else f"{base_text} {'+' if total > 0 else '-'} {abs(total)}"
    text = source(node)
    return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


def _integer(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


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

    def of(self, node: ast.expr) -> Cell | None:
        """The cell that an expression is, if it is one."""
        if isinstance(node, ast.Call):
            return self._getpixel(node)
        if not isinstance(node, ast.Subscript):
            return None
        indices: list[ast.expr] = []
        base: ast.expr = node
        nested = 0
        while isinstance(base, ast.Subscript):
            part = base.slice
            indices = [*(part.elts if isinstance(part, ast.Tuple) else [part]), *indices]
            nested += 1
            base = base.value
        if not isinstance(base, (ast.Name, ast.Attribute)):
            return None
        positions = [self.index(index) for index in indices]
        if any(position is None for position in positions) or len(positions) != len(self.axes):
            return None
        name = source(base)
        if name in self.pixels:
            return self._cell(self.pixels[name], "image", list(reversed(positions)))  # type: ignore[arg-type]
        return self._cell(name, "list" if nested > 1 or len(positions) == 1 else "array", positions)  # type: ignore[arg-type]

    def put(self, node: ast.Call) -> tuple[Cell, ast.expr] | None:
        """(cell, value) of ``image.putpixel((x, y), value)``."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "putpixel" and len(node.args) == 2:
            cell = self._image(node.func.value, node.args[0])
            return (cell, node.args[1]) if cell else None
        return None

    def index(self, node: ast.expr) -> tuple[int, int] | None:
        """(axis, offset) of an index that is a variable of the nest plus or minus a number."""
        names = [axis.variable for axis in self.axes]
        if isinstance(node, ast.Name) and node.id in names:
            return names.index(node.id), 0
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            offset, left = _integer(node.right), node.left
            if isinstance(left, ast.Name) and left.id in names and offset is not None:
                return names.index(left.id), offset if isinstance(node.op, ast.Add) else -offset
        return None

    def _getpixel(self, node: ast.Call) -> Cell | None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "getpixel" and len(node.args) == 1:
            return self._image(node.func.value, node.args[0])
        return None

    def _image(self, image: ast.expr, position: ast.expr) -> Cell | None:
        if not isinstance(position, (ast.Tuple, ast.List)) or len(position.elts) != 2 or len(self.axes) != 2:
            return None
        positions = [self.index(coordinate) for coordinate in position.elts]
        if any(position is None for position in positions):
            return None
        return self._cell(source(image), "image", list(reversed(positions)))  # type: ignore[arg-type]

    def _cell(self, base: str, kind: str, positions: list[tuple[int, int]]) -> Cell | None:
        order = tuple(axis for axis, _ in positions)
        if sorted(order) != list(range(len(self.axes))):
            return None
        return Cell(base, kind, tuple(offset for _, offset in positions), order)

    def read(self, cell: Cell, numpy: str, channels: int | None) -> ast.expr:
        """The array of a cell's values over the whole nest, one axis a level."""
        text = self.arrays.get((cell.base, cell.kind)) or _array_of(cell, numpy)
        text += self._slices(cell)
        if cell.order != tuple(range(len(self.axes))):
            text = f"{numpy}.swapaxes({text}, 0, 1)"
        if channels is not None:
            text = f"{numpy}.moveaxis({text}, -1, 0)"
        return ast.parse(text, mode="eval").body

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
