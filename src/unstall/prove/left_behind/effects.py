"""What a whole run left behind: exit code, standard output, files; and whether another run left the same.

Bytes are compared. Where texts differ, their figures of time (``3.2 s``, ``120 it/s``, ``12:31:07``) are left out,
and a number that the original's own runs disagree on is judged by how far they do.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from unstall.prove import thresholds
from unstall.prove.left_behind import binaries, event_files
from unstall.prove.left_behind.echoes import Echo, masked
from unstall.prove.left_behind.names import by_known_names
from unstall.prove.trees import Files
from unstall.records.proof import Difference

STDOUT = "standard output"
STDERR = "standard error"
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_A_MOMENT = "\0"  # no text holds one: what does is none
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]?|\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?|\b0x[0-9a-f]+|\b1[6-9]\d{8}(?:\.\d+)?\b")
_UNIT = r"(?:[mnuµ]?s|secs?|seconds?|min|minutes?|h|hours?)"
_WORK = r"(?:it|iters?|iterations?|steps?|samples?|images?|batch(?:es)?|tokens?|rows?|examples?|epochs?)"
_NUMBER_NEXT = r"[ \t]*[:=]?[ \t]*[-+.\d]"  # after it "min" is the least of something
_TIME_AFTER = re.compile(
    rf"[ \t]*(?:{_UNIT}\b(?<!min)|min\b(?!{_NUMBER_NEXT})|\w*/{_UNIT}\b|{_WORK} (?:per|a) {_UNIT}\b)", re.IGNORECASE
)
_TIME_BEFORE = re.compile(
    rf"(?:\b|_)(?:time|elapsed|took|duration|seconds|secs|fps|sps|mfu|throughput|{_WORK}(?:[_ ]per[_ ]|[/_]){_UNIT}"
    rf"|{_UNIT}(?:[_ ]per[_ ]|/){_WORK})"
    r"['\"]?\s*[:=(]?\s*$",
    re.IGNORECASE,
)
_TAG = re.compile(r"[a-z]+-?\d+(?:-pytest-[\d.]+)?(?:\.opt-[12])?\.pyc")
_BLOCK_BYTES = 1 << 20
_BINARY = 1e-6


@dataclass(frozen=True)
class Content:
    """Of a file, or of what was printed."""

    digest: bytes
    size: int
    text: str | None = None
    """None where it is not text, or long."""
    parts: binaries.Parts = field(default_factory=dict, compare=False, repr=False)
    """The numbers in one that is not text."""
    permissions: int | None = field(default=None, compare=False)
    """Who may do what with a file; None of what is no file."""

    def is_as_open(self, other: Content) -> bool:
        """Whether the same people may do the same with both, as far as that is known."""
        return None in (self.permissions, other.permissions) or self.permissions == other.permissions

    @classmethod
    def of(cls, content: bytes) -> Content:
        """What is compared of some bytes."""
        return cls.read(io.BytesIO(content))

    @classmethod
    def read(cls, file: BinaryIO) -> Content:
        """What is compared of a file that is open for reading."""
        digest, size, begin = hashlib.blake2b(digest_size=16), 0, b""
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            if size <= thresholds.MOST_COMPARED_BYTES:
                begin += block
            size += len(block)
        text = _text(begin) if size <= thresholds.MOST_COMPARED_BYTES else None
        return cls(digest.digest(), size, text, binaries.parts_of(file) if text is None else {})


@dataclass(frozen=True)
class Effects:
    """Of one whole run."""

    status: int
    last_line: str
    """The last line that it wrote to stderr."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """What was printed, and each file that was written."""


_REMOVED = Content(b"removed", -1)


class Figure(NamedTuple):
    """A number in a text."""

    text: str
    line: int
    is_time: bool


def written(layers: Iterable[tuple[str, Path]], given: Files) -> Iterator[tuple[str, Content]]:
    """(path, content) of each file that a child of the sandbox wrote: it is another than what was there before it ran.

    ``given``: the files that were put in place for the run; what it writes there is compared like any other file.
    """
    for place, upper in layers:
        for folder, _, names in os.walk(upper):
            for name in names:
                above = Path(folder, name)
                path = Path(place) / above.relative_to(upper)
                content = None if _is_compiled(path, above) else _content(above)
                before = _before(path, given) if content is not None else None
                if content is not None and not (before == content and content.is_as_open(before)):
                    yield str(path), content


def _before(path: Path, given: Files) -> Content | None:
    if path not in given:
        return _content(path)
    content = given[path]
    return _REMOVED if content is None else Content.of(content)


def _is_compiled(path: Path, above: Path) -> bool:
    """Whether it is what Python itself keeps of a module that is there."""
    if path.suffix != ".pyc" or path.parent.name != "__pycache__" or _is_unchecked(above):
        return False
    stem, _, tag = path.name.partition(".")
    if not _TAG.fullmatch(tag):
        return False
    source = f"{stem}.py"
    return any((place.parent.parent / source).exists() for place in (path, above))


def _is_unchecked(compiled: Path) -> bool:
    """Whether Python takes it for the source without looking whether that is still the same (PEP 552)."""
    try:
        with compiled.open("rb") as file:
            return int.from_bytes(file.read(8)[4:], "little") == 1
    except OSError:
        return False


def _content(path: Path) -> Content | None:
    """None where there is nothing that can be read."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return Content(os.fsencode(os.readlink(path)), -1)
        if stat.S_ISCHR(mode):  # an overlay's way to say that it is removed
            return _REMOVED
        if not stat.S_ISREG(mode):
            return None
        with path.open("rb") as file:
            text = event_files.as_text(file) if event_files.is_one(path.name) else None
            file.seek(0)
            content = Content.read(file) if text is None else Content.of(text)
            return replace(content, permissions=stat.S_IMODE(mode))
    except OSError:
        return None


def _text(content: bytes) -> str | None:
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


NOTHING = Content.of(b"")


class EffectsComparison:
    """Compares runs of a changed program with the original's."""

    def __init__(
        self,
        originals: Sequence[Effects],
        perturbed: Sequence[tuple[Effects, Effects]] = (),
        *,
        size: float = 0.0,
        loose: bool = False,
        echoed: Sequence[Echo] = (),
    ):
        """Compare with these runs.

        Args:
            originals: of the program as it is: one, or more where it does not reproduce itself.
            perturbed: how far rounding carries its figures: pairs of runs of the original under the same seeds, as it
                is and off by one unit in the last place.
            size: how many times as far a figure may be off.
            loose: figures may be any: a person allowed other values.
            echoed: settings of the change that may be printed as they are.
        """
        self.echoed = echoed
        originals = [_by_known_names(effects) for effects in originals]
        perturbed = [(_by_known_names(a), _by_known_names(b)) for a, b in perturbed]
        self.originals, self.perturbed, self.size, self.loose = originals, perturbed, size, loose
        self.unsteady: list[str] = []
        """What the original itself does not reproduce, and was not compared therefore."""
        self.masked: list[str] = []
        """Texts that were compared without settings of the change."""

    def first(self, changed: Effects) -> Difference | None:
        """The first difference, None where there is none."""
        original, changed = self.originals[0], _by_known_names(changed)
        if changed.status != original.status:
            last = f": {changed.last_line}" if changed.last_line else ""
            return _effect("exit code", f"{changed.status} instead of {original.status}{last}")
        for name in sorted({*original.contents, *changed.contents}, key=lambda name: (name != STDOUT, name)):
            difference = self._of(name, changed.contents.get(name))
            if difference is not None:
                return difference
        return None

    def _of(self, name: str, changed: Content | None) -> Difference | None:
        originals = [run.contents.get(name) for run in self.originals]
        known = [content for content in originals if content is not None]
        if changed is not None and known and not any(changed.is_as_open(content) for content in known):
            return _effect(name, f"its permissions are {_octal(changed)} instead of {_octal(known[0])}")
        if changed in originals:
            return None
        if len(known) < len(originals) or changed is None or changed.size < 0:
            if len(set(originals)) > 1:
                self.unsteady.append(name)
                return None
            return _effect(name, "is not written" if changed is None else "is written, which it was not")
        texts = [content.text for content in known if content.text is not None]
        if changed.text is None or len(texts) < len(known):
            return self._of_bytes(name, known, changed)
        return self._of_text(name, texts, changed.text)

    def _of_bytes(self, name: str, originals: Sequence[Content], changed: Content) -> Difference | None:
        if len({content.digest for content in originals}) > 1:
            self.unsteady.append(name)
            return None
        if binaries.hold_the_same(originals[0].parts, changed.parts):
            return None
        if self.loose or self.size:
            return None if self.loose else self._of_numbers(name, originals[0], changed)
        return Difference(
            kind="values", place=name, detail=f"other content ({changed.size} bytes, {originals[0].size} before)"
        )

    def _of_numbers(self, name: str, original: Content, changed: Content) -> Difference | None:
        """Of a file whose numbers may be off by what rounding does."""
        files = [[content.parts for run in runs if (content := run.contents.get(name))] for runs in self.perturbed]
        pairs = [(pair[0], pair[1]) for pair in files if len(pair) == 2]
        beyond = binaries.beyond_rounding(original.parts, changed.parts, pairs)
        return Difference(kind="values", place=name, detail=beyond) if beyond else None

    def _of_text(self, name: str, originals: Sequence[str], changed: str) -> Difference | None:
        if changed != (changed := masked(changed, self.echoed)):
            self.masked.append(name)
        originals = [masked(text, self.echoed) for text in originals]
        words, figures = split(changed)
        splits = [split(text) for text in originals]
        if any(other != splits[0][0] for other, _ in splits):
            self.unsteady.append(name)
            return None
        if words != splits[0][0]:
            line, before, after = _first_lines(originals[0], changed)
            return _effect(f"{name}, line {line}", f"{after!r} instead of {before!r}")
        noise = self._noise(name, words)
        one_sided = _all_in_one_direction(figures, splits[0][1])
        if one_sided and not self.loose:
            return Difference(kind="values", place=name, detail=one_sided)
        for index, figure in enumerate(figures):
            steady = [other[index].text for _, other in splits]
            if not (self.loose or self._is_like(figure, steady, noise[index] if noise else 0.0)):
                return Difference(
                    kind="values", place=f"{name}, line {figure.line}", detail=f"{figure.text} instead of {steady[0]}"
                )
        return None

    def _noise(self, name: str, words: Sequence[str]) -> list[float]:
        """How far one unit in the last place moves each figure of a text; nothing where that is not known."""
        deviations = []
        for runs in self.perturbed:
            texts = [content.text for run in runs if (content := run.contents.get(name)) and content.text is not None]
            texts = [masked(text, self.echoed) for text in texts]
            splits = [figures for other, figures in map(split, texts) if other == words]
            if len(splits) == len(runs):
                deviations.append([abs(float(a.text) - float(b.text)) for a, b in zip(*splits)])
        return [max(of_figure) for of_figure in zip(*deviations)]

    def _is_like(self, figure: Figure, originals: Sequence[str], noise: float) -> bool:
        if figure.is_time or figure.text in originals:
            return True
        values = [float(text) for text in originals]
        allowed = thresholds.SPREAD * (max(values) - min(values))
        if self.size:
            is_whole = all(re.fullmatch(r"[-+]?\d+", text) for text in (figure.text, *originals))
            allowed += self.size * noise + (0.0 if is_whole else _last_place(originals[0]))
        # Decimals that are one place apart are apart by a little more or less than that as binary numbers.
        return abs(float(figure.text) - values[0]) <= allowed * (1 + _BINARY)


def _by_known_names(effects: Effects) -> Effects:
    return replace(effects, contents=by_known_names(effects.contents))


def words_differ(name: str, originals: Sequence[Content], changed: Content) -> Difference | None:
    """Where a text first has other words than the original's runs, which have the same; numbers may be any."""
    comparison = EffectsComparison([Effects(0, "", {name: content}) for content in originals], loose=True)
    return comparison.first(Effects(0, "", {name: changed}))


def split(text: str) -> tuple[list[str], list[Figure]]:
    """The words of a text between its numbers, and these; a moment or an address is a word, whichever it is."""
    text = _MOMENT.sub(_A_MOMENT, text)
    words, figures, end, line = [], [], 0, 1
    for match in _NUMBER.finditer(text):
        before = text[end : match.start()]
        line += before.count("\n")
        words.append(before)
        around = text[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]
        is_time = bool(_TIME_AFTER.match(text, match.end()) or _TIME_BEFORE.search(around))
        figures.append(Figure(match[0], line, is_time))
        end = match.end()
    return [*words, text[end:]], figures


def _all_in_one_direction(figures: Sequence[Figure], originals: Sequence[Figure]) -> str | None:
    """That figures are cut off where they were rounded, say: where many differ, rounding goes both ways."""
    pairs = [(float(a.text), float(b.text)) for a, b in zip(figures, originals) if a.text != b.text and not a.is_time]
    smaller = sum(after < before for after, before in pairs)
    if len(pairs) < thresholds.ONE_SIDED or smaller not in (0, len(pairs)):
        return None
    return f"{len(pairs)} figures differ, and all of them are {'smaller' if smaller else 'larger'} than before"


def _octal(content: Content) -> str:
    return f"{content.permissions:04o}"


def _last_place(text: str) -> float:
    """One unit in the last place that is written."""
    digits, _, exponent = text.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def _first_lines(before: str, after: str) -> tuple[int, str, str]:
    """The first line whose words differ: its number, and both."""
    pairs = [*zip(before.splitlines(), after.splitlines())]
    for number, (a, b) in enumerate(pairs, 1):
        if split(a)[0] != split(b)[0]:
            return number, a[:80], b[:80]
    longer = [*before.splitlines()[len(pairs) :], ""][0], [*after.splitlines()[len(pairs) :], ""][0]
    return len(pairs) + 1, longer[0][:80], longer[1][:80]


def _effect(place: str, detail: str) -> Difference:
    return Difference(kind="effects", place=place, detail=detail)
