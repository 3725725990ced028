"""The three transforms of pytorch/examples mnist_rnn, with the operators that torchvision calls for them."""

import numpy as np
import torch


class Compose:
    """One after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    """A Pillow image as floats between 0 and 1, channels first."""

    def __call__(self, image):
        tensor = torch.from_numpy(np.array(image, np.uint8, copy=True))
        tensor = tensor.view(image.size[1], image.size[0], 1).permute((2, 0, 1)).contiguous()
        return tensor.to(dtype=torch.get_default_dtype()).div(255)


class Normalize:
    """Minus the mean, divided by the deviation, for each channel."""

    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        tensor = tensor.clone()
        mean = torch.as_tensor(self.mean, dtype=tensor.dtype).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=tensor.dtype).view(-1, 1, 1)
        return tensor.sub_(mean).div_(std)
