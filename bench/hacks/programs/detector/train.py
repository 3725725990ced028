"""Trains a detector of rectangles, validates its average, writes metrics.jsonl, boxes.json and detector.pt."""

import json

import torch
from data import CLASSES, Pictures, collate, make_records
from losses import detection_loss
from metrics import count_right, detections
from model import Average, Detector
from torch.utils.data import DataLoader

EPOCHS, BATCH = 4, 8


def validate(model, loader):
    """Mean loss, recall, precision, and the boxes of every picture."""
    loss, right, found, there, answers = 0.0, 0, 0, 0, []
    with torch.no_grad():
        for images, boxes, labels in loader:
            scores, moves = model(images)
            loss += detection_loss(scores, moves, boxes, labels).item()
            for row in range(len(images)):
                answer = detections(scores[row], moves[row])
                right += count_right(answer, boxes[row], labels[row])
                found, there = found + len(answer), there + len(boxes[row])
                answers.append(
                    [[label, round(score, 3), [round(x, 2) for x in box.tolist()]] for label, score, box in answer]
                )
    return loss / len(loader), right / there, right / max(1, found), answers


def train_epoch(model, average, loader, optimizer):
    model.train()
    total, norms = 0.0, 0.0
    for images, boxes, labels in loader:
        optimizer.zero_grad()
        scores, moves = model(images)
        loss = detection_loss(scores, moves, boxes, labels)
        loss.backward()
        norms += float(torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0))
        optimizer.step()
        average.update(model)
        total += loss.item()
    return total / len(loader), norms / len(loader)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    training = Pictures(make_records(21, 72), training=True)
    held_out = Pictures(make_records(22, 24), training=False)
    train_loader = DataLoader(training, batch_size=BATCH, shuffle=True, drop_last=True, collate_fn=collate)
    valid_loader = DataLoader(held_out, batch_size=BATCH, collate_fn=collate)
    model = Detector(CLASSES)
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    with open("metrics.jsonl", "w") as log:
        for epoch in range(EPOCHS):
            loss, norm = train_epoch(model, average, train_loader, optimizer)
            valid_loss, recall, precision, answers = validate(average.model, valid_loader)
            row = {
                "epoch": epoch,
                "loss": loss,
                "norm": norm,
                "valid": valid_loss,
                "recall": recall,
                "precision": precision,
            }
            row["rate"] = scheduler.get_last_lr()[0]
            log.write(json.dumps({name: round(value, 5) for name, value in row.items()}) + "\n")
            print(" ".join(f"{name} {value:.4f}" for name, value in row.items()))
            scheduler.step()
    with open("boxes.json", "w") as file:
        json.dump(answers, file)
    torch.save({"model": model.state_dict(), "average": average.model.state_dict()}, "detector.pt")


if __name__ == "__main__":
    main()
