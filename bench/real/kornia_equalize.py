"""Train a small network on made images that kornia equalizes, batch by batch."""

import time

import torch
from kornia.augmentation import RandomEqualize
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
IMAGES, SIZE, CLASSES, EPOCHS = 1024, 64, 10, 14
labels = torch.randint(CLASSES, (IMAGES,))
images = torch.sigmoid(torch.randn(CLASSES, 3, SIZE, SIZE)[labels] + torch.randn(IMAGES, 3, SIZE, SIZE))
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
equalize = RandomEqualize(p=1.0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, stride=2), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(64 * 16, CLASSES),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()

began = time.perf_counter()
for epoch in range(EPOCHS):
    for data, target in loader:
        with torch.no_grad():
            data = equalize(data)
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"seconds={time.perf_counter() - began:.3f}")
