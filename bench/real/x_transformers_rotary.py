"""Train a small decoder of x-transformers with rotary embeddings on made tokens."""

import time

import torch
from stand_in import stand_in

stand_in("entmax")  # for another kind of attention

from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper  # noqa: E402

torch.manual_seed(0)
LENGTH, BATCH, STEPS = 256, 8, 40
decoder = Decoder(dim=128, depth=4, heads=4, rotary_pos_emb=True)
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
