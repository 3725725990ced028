"""As much of torchvision as pytorch/examples mnist_rnn imports, on made digits.

Each sample goes the way that it goes in torchvision: an array, a Pillow image, the transforms, one by one.
"""

from torchvision import datasets, transforms

__all__ = ["datasets", "transforms"]
