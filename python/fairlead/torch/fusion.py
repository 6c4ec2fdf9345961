"""A convolution or matrix product that is not appended yet, because what follows may become part of its kernel.

    conv -> batch_norm -> add -> relu      one launch: weights and bias scaled, the other summand read, negative results
    cut
"""

import torch


class Pending:
    """`emit(weight, bias, addend, activation)` appends it. weight and bias are torch tensors or None where they are not
    known here; then nothing is folded into them."""

    def __init__(self, shape, emit, weight=None, bias=None, addend=None, activation=None):
        self.shape, self._emit, self._tensor = shape, emit, None
        self.weight, self.bias, self.addend, self.activation = weight, bias, addend, activation

    def tensor(self):
        if self._tensor is None:
            self._tensor = self._emit(self.weight, self.bias, self.addend, self.activation)
        return self._tensor

    def is_plain(self):
        return self._tensor is None and self.addend is None and self.activation is None

    def normalised(self, weight, bias, mean, variance, epsilon):
        """With a batch normalisation, or None where that cannot be: (x w + b - mean) s + beta = x (w s) + (b - mean) s
        + beta for each output channel, s = weight / sqrt(variance + epsilon)."""
        known = all(isinstance(value, torch.Tensor) for value in (self.weight, weight, bias, mean, variance))
        if not known or not self.is_plain() or not (self.bias is None or isinstance(self.bias, torch.Tensor)):
            return None
        scale = weight / torch.sqrt(variance + epsilon)
        before = torch.zeros_like(mean) if self.bias is None else self.bias
        folded = self.weight * scale.reshape(-1, *[1] * (self.weight.dim() - 1))
        return Pending(self.shape, self._emit, folded.contiguous(), (before - mean) * scale + bias)

    def plus(self, other):
        """With a summand of the result's shape."""
        return Pending(self.shape, self._emit, self.weight, self.bias, other)

    def activated(self, name):
        return Pending(self.shape, self._emit, self.weight, self.bias, self.addend, name)

    def can_be_activated(self):
        return self._tensor is None and self.activation is None
