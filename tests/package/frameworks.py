"""The package's two parts by the same names, for tests that ask both."""

from importlib import import_module

import numpy as np
import pytest

from cellbycell.figures.names_model import stored_config


class PyTorch:
    """One part; a tensor has the dtype that is given, or the usual one."""

    def __init__(self, usual=None):
        self.torch = pytest.importorskip("torch")
        self.package = import_module("cellbycell.pytorch")
        self.refused, self.usual = RuntimeError, usual

    def __getattr__(self, name):
        return getattr(self.package, name)

    def tensor(self, numbers, dtype=None):
        tensor, dtype = self.torch.as_tensor(numbers), dtype or self.usual
        return tensor if dtype is None else tensor.to(self.dtype(dtype))

    def dtype(self, name):
        return getattr(self.torch, name)

    def kind(self, tensor):
        return str(tensor.dtype).removeprefix("torch.")

    def wide(self, tensor):
        return tensor.detach().double().numpy()

    def slope(self, function, x):
        """Return function(x) and the gradient of its sum."""
        found = function(x.requires_grad_())
        return found.detach(), self.torch.autograd.grad(found.sum(), x)[0]

    def layer(self, name, *sizes, dtype):
        return getattr(self, name)(*sizes).to(self.dtype(dtype))

    def llama(self, weights):
        """Return the names' Llama with these weights."""
        model = self.Llama(stored_config())
        for name, weight in self.llama_weights(model).items():
            weight.data = self.tensor(weights[name], "float32")
        return model


class TensorFlow:
    """The other part, whose names end in _tf or TF."""

    def __init__(self, usual=None):
        self.tf = pytest.importorskip("tensorflow")
        self.keras = pytest.importorskip("keras")
        self.package = import_module("cellbycell.tensorflow")
        self.refused = self.tf.errors.InvalidArgumentError
        self.usual = usual

    def __getattr__(self, name):
        twin = f"{name}TF" if name[0].isupper() else f"{name}_tf"
        return getattr(self.package, twin)

    def tensor(self, numbers, dtype=None):
        dtype = dtype or self.usual or np.asarray(numbers).dtype
        return self.tf.cast(numbers, dtype)

    def kind(self, tensor):
        return tensor.dtype.name

    def wide(self, tensor):
        return self.tf.cast(tensor, "float64").numpy()

    def slope(self, function, x):
        """Return function(x) and the gradient of its sum."""
        with self.tf.GradientTape() as tape:
            tape.watch(x)
            found = function(x)
        return found, tape.gradient(found, x)

    def layer(self, name, *sizes, dtype):
        usual = self.keras.config.dtype_policy()
        self.keras.config.set_dtype_policy(dtype)
        try:
            return getattr(self, name)(*sizes)
        finally:
            self.keras.config.set_dtype_policy(usual)

    def llama(self, weights):
        """Return the names' Llama with these weights."""
        model = self.Llama(stored_config())
        for name, weight in self.llama_weights(model).items():
            given = weights[name]
            weight.assign(given if "embed" in name else given.T)
        return model
