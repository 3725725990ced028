"""The best sequence of tags, the spans in it, and their F1."""

import torch
from data import TAGS

FORBIDDEN = -1e4


def transitions():
    """(T, T): 0 where a tag may follow another, else a large penalty."""
    scores = torch.zeros(len(TAGS), len(TAGS))
    for before, left in enumerate(TAGS):
        for after, right in enumerate(TAGS):
            if right.startswith("I-") and left[2:] != right[2:]:
                scores[before, after] = FORBIDDEN
    return scores


def viterbi(logits, length):
    """The tags of one sentence, best in sum under the transitions."""
    allowed = transitions()
    best = [float(logits[0, tag]) + float(allowed[0, tag]) for tag in range(len(TAGS))]
    back = []
    for position in range(1, length):
        pointers, scores = [], []
        for tag in range(len(TAGS)):
            candidates = [best[before] + float(allowed[before, tag]) for before in range(len(TAGS))]
            pointer = max(range(len(TAGS)), key=candidates.__getitem__)
            pointers.append(pointer)
            scores.append(candidates[pointer] + float(logits[position, tag]))
        back.append(pointers)
        best = scores
    tag = max(range(len(TAGS)), key=best.__getitem__)
    path = [tag]
    for pointers in reversed(back):
        tag = pointers[tag]
        path.append(tag)
    return path[::-1]


def spans(tags):
    """{(kind, first, last)} of a sequence of tag numbers."""
    found, start, kind = set(), None, None
    for position, tag in enumerate([*tags, 0]):
        name = TAGS[tag]
        if start is not None and not name.startswith("I-"):
            found.add((kind, start, position - 1))
            start = None
        if name.startswith("B-"):
            start, kind = position, name[2:]
    return found


def f1(right, predicted, actual):
    return 2 * right / (predicted + actual) if predicted + actual else 0.0
