"""Fine-tune a small sentence encoder on made question-answer pairs, no text twice in a batch."""

import random
import tempfile
import time
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
)  # fmt: skip
from sentence_transformers.training_args import BatchSamplers
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

torch.manual_seed(0)
rng = random.Random(0)
WORDS = [f"w{number}" for number in range(500)]
PAIRS, STEPS = 20000, 400


def sentence():
    return " ".join(rng.choices(WORDS, k=8))


def encoder(folder):
    """A BERT of two layers, with a token for each made word."""
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = Tokenizer(token_models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=32,
    ).save_pretrained(folder)  # fmt: skip
    BertModel(BertConfig(
        vocab_size=len(vocabulary), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
        max_position_embeddings=64,
    )).save_pretrained(folder)  # fmt: skip
    words = models.Transformer(str(folder), max_seq_length=32)
    return SentenceTransformer(modules=[words, models.Pooling(64)], device="cpu")


with tempfile.TemporaryDirectory() as name:
    model = encoder(Path(name))
questions = [sentence() for _ in range(PAIRS // 4)]
pairs = Dataset.from_dict({
    "anchor": [rng.choice(questions) for _ in range(PAIRS)], "positive": [sentence() for _ in range(PAIRS)],
})  # fmt: skip
arguments = SentenceTransformerTrainingArguments(
    output_dir="out", max_steps=STEPS, per_device_train_batch_size=32, batch_sampler=BatchSamplers.NO_DUPLICATES,
    use_cpu=True, report_to="none", save_strategy="no", logging_steps=100, disable_tqdm=True,
)  # fmt: skip
trainer = SentenceTransformerTrainer(
    model=model, args=arguments, train_dataset=pairs, loss=losses.MultipleNegativesRankingLoss(model)
)

began = time.perf_counter()
trainer.train()
print(f"seconds={time.perf_counter() - began:.3f}")
