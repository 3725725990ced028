"""Train nanoGPT's model on made characters, as its train.py does on a CPU."""

import time

import torch
from model import GPT, GPTConfig

torch.manual_seed(0)
BLOCK, BATCH, STEPS = 256, 8, 40
text = torch.randint(65, (200_000,))
model = GPT(GPTConfig(block_size=BLOCK, vocab_size=65, n_layer=4, n_head=4, n_embd=128, dropout=0.0))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99))


def get_batch():
    places = torch.randint(len(text) - BLOCK, (BATCH,))
    x = torch.stack([text[place : place + BLOCK] for place in places])
    y = torch.stack([text[place + 1 : place + 1 + BLOCK] for place in places])
    return x, y


began = time.perf_counter()
for step in range(STEPS):
    x, y = get_batch()
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 0:
        print(f"iter {step}: loss {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
