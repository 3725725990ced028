"""Trains a tagger of names, validates it after each epoch, writes log.csv, predictions.txt and tagger.pt."""

import csv

import torch
from data import SHAPES, TAGS, Sentences, Vocabulary, collate, make_corpus
from metrics import f1, spans, viterbi
from model import Tagger, tagging_loss
from torch.utils.data import DataLoader

EPOCHS, BATCH, LEARNING_RATE = 4, 16, 4e-3


def validate(model, loader):
    """Mean loss, F1 of the spans, and the tags of every sentence."""
    model.eval()
    losses, right, predicted, actual, paths = 0.0, 0, 0, 0, []
    with torch.no_grad():
        for words, shapes, tags, lengths in loader:
            logits = model(words, shapes, lengths)
            losses += tagging_loss(logits, tags, lengths).item()
            for row, length in enumerate(lengths.tolist()):
                path = viterbi(logits[row], length)
                ours, theirs = spans(path), spans(tags[row, :length].tolist())
                right, predicted, actual = right + len(ours & theirs), predicted + len(ours), actual + len(theirs)
                paths.append(path)
    model.train()
    return losses / len(loader), f1(right, predicted, actual), paths


def train_epoch(model, loader, optimizer, scheduler):
    """Mean loss and share of right tags of one epoch."""
    total, right, words_seen = 0.0, 0, 0
    for words, shapes, tags, lengths in loader:
        optimizer.zero_grad()
        logits = model(words, shapes, lengths)
        loss = tagging_loss(logits, tags, lengths)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        for row, length in enumerate(lengths.tolist()):
            for position in range(length):
                right += int(logits[row, position].argmax().item() == tags[row, position].item())
                words_seen += 1
    return total / len(loader), right / words_seen


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    lines = make_corpus(11, 400)
    vocabulary = Vocabulary(lines)
    training = Sentences(lines, vocabulary, training=True)
    held_out = Sentences(make_corpus(12, 64), vocabulary, training=False)
    train_loader = DataLoader(training, batch_size=BATCH, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(held_out, batch_size=BATCH, collate_fn=collate)
    model = Tagger(len(vocabulary), len(SHAPES), len(TAGS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=EPOCHS * len(train_loader))
    best = -1.0
    with open("log.csv", "w", newline="") as log:
        writer = csv.writer(log)
        writer.writerow(["epoch", "loss", "accuracy", "valid_loss", "f1"])
        for epoch in range(EPOCHS):
            loss, accuracy = train_epoch(model, train_loader, optimizer, scheduler)
            valid_loss, score, paths = validate(model, valid_loader)
            writer.writerow([epoch, f"{loss:.6f}", f"{accuracy:.5f}", f"{valid_loss:.6f}", f"{score:.5f}"])
            print(f"epoch {epoch} loss {loss:.5f} accuracy {accuracy:.4f} valid {valid_loss:.5f} f1 {score:.4f}")
            if score > best:
                best = score
                torch.save({"model": model.state_dict(), "epoch": epoch, "f1": score}, "tagger.pt")
    with open("predictions.txt", "w") as file:
        for path in paths:
            file.write(" ".join(TAGS[tag] for tag in path) + "\n")
    print(f"best f1 {best:.4f}")


if __name__ == "__main__":
    main()
