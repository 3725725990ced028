"""Whether a run of a changed program left the same behind as the original's.

Bytes are compared. Where texts differ, their figures of time are left out, and a number that the original's own runs
disagree on is judged by how far they do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from unstall.prove import thresholds
from unstall.prove.left_behind import binaries
from unstall.prove.left_behind.echoes import Echo, masked
from unstall.prove.left_behind.effects import STDOUT, Content, Effects
from unstall.prove.left_behind.names import by_known_names
from unstall.prove.left_behind.texts import (
    Figure,
    all_in_one_direction,
    first_differing_line,
    last_place,
    single_precision,
    split,
)
from unstall.records.proof import Difference

_BINARY = 1e-6


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
            line, before, after = first_differing_line(originals[0], changed)
            return _effect(f"{name}, line {line}", f"{after!r} instead of {before!r}")
        noise = self._noise(name, words)
        one_sided = all_in_one_direction(figures, splits[0][1])
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
            own = 0.0 if is_whole else single_precision(originals[0])
            allowed += self.size * max(noise, own) + (0.0 if is_whole else last_place(originals[0]))
        # Decimals that are one place apart are apart by a little more or less than that as binary numbers.
        return abs(float(figure.text) - values[0]) <= allowed * (1 + _BINARY)


def _by_known_names(effects: Effects) -> Effects:
    return replace(effects, contents=by_known_names(effects.contents))


def words_differ(name: str, originals: Sequence[Content], changed: Content) -> Difference | None:
    """Where a text first has other words than the original's runs, which have the same; numbers may be any."""
    comparison = EffectsComparison([Effects(0, "", {name: content}) for content in originals], loose=True)
    return comparison.first(Effects(0, "", {name: changed}))


def _octal(content: Content) -> str:
    return f"{content.permissions:04o}"


def _effect(place: str, detail: str) -> Difference:
    return Difference(kind="effects", place=place, detail=detail)
