"""Boxes of a detector's answer, and how many of them are right."""

import torch
from losses import ANCHORS, BACKGROUND, overlap

LEAST_SCORE, MOST_OVERLAP, RIGHT = 0.5, 0.45, 0.4


def suppress(boxes, scores):
    """The numbers of the boxes to keep, best first: none overlaps a better one."""
    order = sorted(range(len(boxes)), key=lambda number: -float(scores[number]))
    kept = []
    for number in order:
        if all(overlap(boxes[number], boxes[other]) <= MOST_OVERLAP for other in kept):
            kept.append(number)
    return kept


def detections(scores, moves):
    """[(class, score, box)] of one picture, from scores (A, C + 1) and moves (A, 4)."""
    probabilities = scores.softmax(-1)
    corners = ANCHORS + 10 * moves
    answer = []
    for label in range(BACKGROUND):
        sure = [number for number in range(len(ANCHORS)) if float(probabilities[number, label]) > LEAST_SCORE]
        if not sure:
            continue
        chosen = torch.tensor(sure)
        for number in suppress(corners[chosen], probabilities[chosen, label]):
            answer.append((label, float(probabilities[sure[number], label]), corners[sure[number]]))
    return answer


def count_right(answer, boxes, labels):
    """How many boxes of a picture were found: each by the surest detection of its class."""
    taken = set()
    for label, _, box in sorted(answer, key=lambda detection: -detection[1]):
        for number in range(len(boxes)):
            if number not in taken and labels[number] == label and overlap(box, boxes[number]) >= RIGHT:
                taken.add(number)
                break
    return len(taken)
