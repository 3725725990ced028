"""A small training loop, and samples of it placed: what the tests of blame share."""

from __future__ import annotations

from factory import measurement, stack

from unstall.diagnose.blame import Blame

TEXT = """
class Photos:
    def __getitem__(self, index):
        return self.transform(index)  # item

class Compose:
    def __call__(self, image):
        for step in self.steps:
            image = step(image)  # apply
        return image

def blur(image):
    return image.filter(3)  # blur

def turn(image):
    return image.rotate(5)  # turn

def crop(image):
    return [row[1:] for row in image]  # crop

class Net:
    def forward(self, x):
        return self.layer(x)  # forward

class Maze:
    def reset(self):
        return 0

    def step(self, action):
        return self.walls[action]  # maze

def prepare(batch):
    return batch / 255  # prepare

def penalty(out):
    return out.norm()  # penalty

def compute_accuracy(out):
    return sum(out)  # accuracy

def tidy(out):
    return sorted(out)  # tidy

def batches():
    for index in range(10):
        yield index * 2  # yield

def train(model, loader):
    for batch in loader:  # ask
        batch = prepare(batch)  # call prepare
        out = model(batch)  # call model
        loss = penalty(out)  # call penalty
        loss.backward()  # call backward
        optimizer.step()  # call optimizer
        compute_accuracy(out)  # call accuracy
        tidy(out)  # call tidy

train(1, 2)  # start
"""


def sites(code):
    above = ("<module>", "# start")
    return [
        code.site("~data.next", "train", "# ask", above),
        code.site("~forward", "train", "# call model", above),
        code.site("~backward", "train", "# call backward", above),
        code.site("~optimizer", "train", "# call optimizer", above),
    ]


def blame_of(samples, **more):
    return Blame(measurement({"forward": 0.05, "other": 0.05}, samples=list(samples), **more))


def phase_of(code, *frames, **more):
    (placed,) = blame_of([stack(*frames)], **{"sites": sites(code), **more}).main
    return placed.phase
