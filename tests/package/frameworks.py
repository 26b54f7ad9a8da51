"""The package's two parts by the same names, for tests that ask both."""

from importlib import import_module

import numpy as np
import pytest


class PyTorch:
    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.package = import_module("cellbycell.pytorch")

    def __getattr__(self, name):
        return getattr(self.package, name)

    def tensor(self, numbers):
        return self.torch.tensor(np.asarray(numbers))


class TensorFlow:
    def __init__(self):
        self.tf = pytest.importorskip("tensorflow")
        self.package = import_module("cellbycell.tensorflow")

    def __getattr__(self, name):
        return getattr(self.package, f"{name}_tf")

    def tensor(self, numbers):
        return self.tf.constant(np.asarray(numbers))
