"""Classifies texts with a pipeline. Planted: it is called for one text after the other; the cure gives it a list and a batch
size. A step is a text."""

import random

import tokenizers
import transformers
from planted import parse_args, rate

transformers.logging.set_verbosity_error()
WORDS = [f"word{number}" for number in range(500)]


def make_tokenizer():
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def classify(classifier, texts, in_batches):
    if in_batches:
        return classifier(texts, batch_size=32)
    return [classifier(text)[0] for text in texts]


def main():
    args = parse_args()
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=512, hidden_size=64, num_hidden_layers=3, num_attention_heads=2, intermediate_size=128
    )
    classifier = transformers.pipeline(
        "text-classification",
        model=transformers.BertForSequenceClassification(config).eval(),
        tokenizer=make_tokenizer(),
        device="cpu",
    )
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=16)) for _ in range(args.steps)]
    with rate(args.steps):
        answers = classify(classifier, texts, in_batches=args.variant == "fast")
    print("labels", sum(answer["label"] == "LABEL_1" for answer in answers))


main()
