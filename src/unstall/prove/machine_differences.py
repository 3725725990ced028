"""What a changed program takes of the machine and the original does not.

A result that is the same is none the better for processes that keep all cores at work beside it, and a program that
holds a lock to its end has the next one wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from unstall.prove import thresholds
from unstall.prove.timing import ProofPair


def more_of_it(pairs: Sequence[ProofPair]) -> str | None:
    """What the changed program takes of the machine and the original does not, in words.

    ``pairs``: whole runs that nothing watched.
    """
    if not pairs:
        return None
    before, after = (median(run.cpu_s for run in runs) for runs in zip(*((p.original, p.changed) for p in pairs)))
    if after > thresholds.MORE_CPU * before and after - before > thresholds.MORE_CPU_S:
        return f"it takes {after:.1f} s of the cores in a run, and the original {before:.1f} s"
    most = max(pair.original.most_threads for pair in pairs)
    least = min(pair.changed.most_threads for pair in pairs)
    if least > max(thresholds.MANY_THREADS, thresholds.MORE_THREADS * most):
        return f"it has {least} threads at once, and the original {most}"
    most = max(pair.original.most_descriptors for pair in pairs)
    least = min(pair.changed.most_descriptors for pair in pairs)
    if least > max(thresholds.MANY_DESCRIPTORS, thresholds.MORE_DESCRIPTORS * most):
        return f"it has {least} files open at once, and the original {most}"
    address = _fixed_address(pairs)
    if address is not None:
        return f"it uses {address} in each run, which two at a time cannot, and the original does not"
    always = all(pair.changed.locked > thresholds.HOLDS_LOCK for pair in pairs)
    if always and not any(pair.original.locked > thresholds.HOLDS_LOCK for pair in pairs):
        return "it holds a lock on a file for much of the run, for which another run would wait"
    return None


def _fixed_address(pairs: Sequence[ProofPair]) -> str | None:
    """An address that two runs of the changed program have had, and none of the original: a free one is another each
    time.
    """
    seen = Counter(address for pair in pairs for address in pair.changed.addresses)
    before = set().union(*(pair.original.addresses for pair in pairs))
    return min((address for address, runs in seen.items() if runs > 1 and address not in before), default=None)
