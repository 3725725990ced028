"""Train flair's sequence tagger for chunks on few made sentences; its test has the size of CoNLL-2000's."""

import random
import tempfile
import time
from pathlib import Path

import torch
import transformers
from stand_in import stand_in

ABSENT = ("gensim", "gdown", "ftfy", "conllu", "sqlitedict", "bpemb", "konoha", "janome", "langdetect", "lxml")
stand_in(*ABSENT, "mpld3", "pptree", "wikipediaapi")
transformers.TransfoXLModel = transformers.TransfoXLTokenizer = object  # no longer there

import flair  # noqa: E402
from flair.data import Dictionary  # noqa: E402
from flair.datasets import ColumnCorpus  # noqa: E402
from flair.embeddings import OneHotEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402

flair.set_seed(0)
rng = random.Random(0)
CHUNKS = ("NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT")
WORDS = [f"w{number}" for number in range(2100)]
TRAIN, DEV, TEST = 600, 200, 2012


def made(path, sentences):
    with path.open("w", encoding="utf-8") as file:
        for _ in range(sentences):
            for _ in range(rng.randint(6, 18)):
                kind = int(len(CHUNKS) * rng.random() ** 2)
                for place in range(rng.randint(1, 3)):
                    word = len(CHUNKS) * int(300 * rng.random() ** 3) + kind
                    file.write(f"{WORDS[word]} {'I' if place else 'B'}-{CHUNKS[kind]}\n")
            file.write("\n")


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for split, sentences in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        made(folder / f"{split}.txt", sentences)
    corpus = ColumnCorpus(folder, {0: "text", 1: "np"})
    vocabulary = Dictionary()
    for word in WORDS:
        vocabulary.add_item(word)
    tagger = SequenceTagger(OneHotEmbeddings(vocabulary), corpus.make_label_dictionary("np"), "np", hidden_size=256)
    began = time.perf_counter()
    scores = ModelTrainer(tagger, corpus).train(
        folder / "run", max_epochs=2, optimizer=torch.optim.Adam, learning_rate=3e-3, use_final_model_for_eval=True
    )
    print(f"accuracy {scores['test_score']:.3f}")
    print(f"seconds={time.perf_counter() - began:.3f}")
