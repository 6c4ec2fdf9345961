"""A PyTorch module as a kernel task: convolution, batch normalisation and rectifier are one kernel."""

import numpy
import torch
from torch import nn

from fairlead import torch as fairlead_torch

module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                       nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()
picture = torch.randn(1, 3, 32, 32)
task = fairlead_torch.from_module(module, (picture,))

name, = (name for name, spec in task.description()["buffers"].items() if spec["role"] == "input")
scores = task.run(**{name: picture.numpy()})["output"]
numpy.testing.assert_allclose(scores, module(picture).detach().numpy(), rtol=1e-4, atol=1e-4)
print(", ".join(launch.kernel for launch in task.launches))
