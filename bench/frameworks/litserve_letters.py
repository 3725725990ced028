"""Serves a model with LitServe, to a client of its own. Planted: a request's letters are counted one by one; the cure counts
bytes with an array. A step is a request."""

import json
import multiprocessing
import os
import signal
import time
import urllib.error
import urllib.request

import litserve
import numpy as np
import torch
from planted import parse_args, rate
from torch import nn

PORT = 18431
TEXT = "the quick brown fox jumps over the lazy dog " * 600


class Scoring(litserve.LitAPI):
    def setup(self, device):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4)).eval()

    def decode_request(self, request):
        counts = [0.0] * 256
        for letter in request["text"]:
            counts[ord(letter)] += 1
        return torch.tensor(counts)

    def predict(self, x):
        with torch.no_grad():
            return self.model(x[None])[0]

    def encode_response(self, output):
        return {"scores": output.tolist()}


class ArrayScoring(Scoring):
    def decode_request(self, request):
        letters = np.frombuffer(request["text"].encode(), np.uint8)
        return torch.from_numpy(np.bincount(letters, minlength=256)).float()


def ask(path, content=None):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def client(steps, server):
    while True:
        try:
            ask("/health")
            break
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    content = json.dumps({"text": TEXT}).encode()
    total = 0.0
    with rate(steps):
        for _ in range(steps):
            total += sum(json.loads(ask("/predict", content))["scores"])
    print("total", round(total, 3), flush=True)
    os.kill(server, signal.SIGINT)


def main():
    args = parse_args()
    multiprocessing.Process(target=client, args=(args.steps, os.getpid())).start()
    api = Scoring() if args.variant == "slow" else ArrayScoring()
    litserve.LitServer(api, accelerator="cpu", workers_per_device=1).run(
        host="127.0.0.1", port=PORT, generate_client_file=False, log_level="error"
    )


if __name__ == "__main__":
    main()
