"""A dataset's ``__getitem__`` that only indexes, written as a ``__getitems__`` that indexes for a whole batch at once.

That is a reading of the source: which operations give for many rows what they give for each. The comparison then
collates each batch's samples one by one as well, see :mod:`unstall.child.trial.indexed_batches`.
"""

from unstall.optimize.indexing.getitems import BatchedGetter, batched_getter

__all__ = ["BatchedGetter", "batched_getter"]
