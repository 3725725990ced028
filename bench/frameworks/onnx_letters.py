"""Scores texts with ONNX Runtime. Planted: features are counted letter by letter in Python; the cure counts bytes with an
array. A step is a batch."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from planted import parse_args, rate


def make_model():
    weights = np.random.default_rng(0).normal(size=(256, 512)).astype(np.float32)
    out = np.random.default_rng(1).normal(size=(512, 4)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "o"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "scorer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 4])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(out, "o")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def count_letters(texts):
    rows = np.zeros((len(texts), 256), np.float32)
    for row, text in enumerate(texts):
        for letter in text:
            rows[row, ord(letter)] += 1
    return rows


def count_bytes(texts):
    return np.stack([np.bincount(np.frombuffer(text.encode(), np.uint8), minlength=256) for text in texts]).astype(
        np.float32
    )


def main():
    args = parse_args()
    session = onnxruntime.InferenceSession(make_model(), providers=["CPUExecutionProvider"])
    texts = ["the quick brown fox jumps over the lazy dog " * 20] * 32
    features = count_letters if args.variant == "slow" else count_bytes
    total = 0.0
    with rate(args.steps):
        for _ in range(args.steps):
            (scores,) = session.run(None, {"x": features(texts)})
            total += float(scores.sum())
    print("total", total)


main()
