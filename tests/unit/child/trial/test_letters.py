"""Texts in which a letter is another, in a real process."""

from __future__ import annotations

import json

import pytest

from .test_account import run_under

PROGRAM = """
    from collections import Counter

    from torch.utils.data import Dataset

    class Vocabulary:
        def __init__(self, lines, more):
            self.counts = Counter(word for line in lines for word in line.split())
            self.words = sorted(self.counts)
            self.first = {word[0] for word in self.words}
            self.numbers = {word: (word, number) for number, word in enumerate(self.words)} if more else {}
            self.itself = self

    class Sentences(Dataset):
        def __init__(self, lines, vocabulary):
            self.lines, self.vocabulary = lines, vocabulary

    class Around(Dataset):
        def __init__(self, sentences, labels):
            self.sentences = sentences

    MORE = __MORE__
    lines = ["anna eats", "a banana", "Ada sees", "no one"] * 2
    vocabulary = Vocabulary(lines, MORE)
    others = [("papa", 1)] * 8
    sentences = Sentences(lines, vocabulary)
    print(lines[:4], vocabulary.words, vocabulary.counts.most_common(1), sorted(vocabulary.first))
    print(*vocabulary.numbers.items(), sep=";")
    print(Sentences(others, vocabulary).lines[0], vocabulary.words[1], len(Around(sentences, [0] * 8).sentences.lines))
"""


@pytest.mark.parametrize("more", [False, True])
def test_the_most_frequent_letter_is_another_in_all_that_datasets_are_made_of(tmp_path, more):
    done, _ = run_under({"letters": {}}, PROGRAM.replace("__MORE__", str(more)), tmp_path)
    lines = done.stdout.splitlines()
    words = ["Ada", "a", "anna", "banana", "eats", "no", "one", "sees"]
    other = [word.replace("a", "ł") for word in words]
    assert lines[0] == (f"['łnnł ełts', 'ł błnłnł', 'Adł sees', 'no one'] {other} [('łnnł', 2)] {sorted('Abenosł')}"), (
        done.stderr
    )
    told = [f"('{word}', ('{word}', {number}))" for number, word in enumerate(other)] if more else [""]
    assert lines[1] == ";".join(told)
    assert lines[2] == "('płpł', 1) ł 8"


def test_which_texts_were_changed_is_told(tmp_path):
    told = []
    for number, (more, lines) in enumerate([("False", "lines"), ("True", "lines"), ("False", "lines[:1]")]):
        (tmp_path / str(number)).mkdir()
        program = PROGRAM.replace("__MORE__", more).replace("Vocabulary(lines,", f"Vocabulary({lines},")
        _, folder = run_under({"letters": {}}, program, tmp_path / str(number))
        told.append(json.loads((folder / "changed_data.json").read_text()))
    assert told[0]["is_text"]
    assert told[0] == told[1] != told[2], "the last one's vocabulary knows fewer words"


def test_lists_of_numbers_are_left(tmp_path):
    program = """
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __init__(self, *given):
            self.given = given

    print(Rows([0.5] * 8, {"name": "a"}, ["a"] * 7).given)
    """
    done, folder = run_under({"letters": {}}, program, tmp_path)
    assert done.stdout == f"{([0.5] * 8, {'name': 'a'}, ['a'] * 7)}\n", done.stderr
    assert not (folder / "changed_data.json").exists()
