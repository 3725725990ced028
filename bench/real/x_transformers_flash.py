"""Train a small decoder of x-transformers on made tokens, with flash attention where the version has it."""

import time
from inspect import signature

import torch
from stand_in import stand_in

stand_in("entmax")  # for another kind of attention

from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper  # noqa: E402
from x_transformers.x_transformers import Attention  # noqa: E402

torch.manual_seed(0)
LENGTH, BATCH, STEPS = 512, 4, 40
faster = {"attn_flash": True} if "flash" in signature(Attention).parameters else {}
decoder = Decoder(dim=128, depth=4, heads=4, **faster)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=256, max_seq_len=LENGTH, attn_layers=decoder))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
tokens = torch.randint(256, (2000, LENGTH + 1))

began = time.perf_counter()
for step in range(STEPS):
    loss = model(tokens[torch.randint(len(tokens), (BATCH,))])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    if step % 10 == 0:
        print(f"training loss: {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
