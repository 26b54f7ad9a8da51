"""Run chapters as another processor might, and say what changes.

`.venv/bin/python -m benchmarks.perturb` runs all chapters as the tests do,
under each perturbation, and prints what is asserted or printed otherwise;
`benchmarks.perturb book/bits.ipynb --under nudge --ulps 8` runs less, harder.

kernels: one thread, the oldest instructions, and other libraries' matrix
products: sums are taken in another order.
nudge: each number that a sum or a function such as exp gives in PyTorch or
TensorFlow is moved by units in its last place, so that all that is trained
or computed with it differs a little.
ties: `round` takes the other neighbour of a number almost half way between.

What moves a number is a function of its own bits: equal ones stay equal, and
a number of few bits, such as a sum of whole numbers, stays exact.
"""

import argparse
import ast
import os
import sys
from pathlib import Path

from tools.notebooks import Notebook, NotebookError, label
from tools.run.chapter import SECONDS, Run
from tools.run.compare import ENVIRONMENT, difference
from tools.settings import ROOT, chapters

KERNELS = {
    "OMP_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "OPENBLAS_CORETYPE": "Prescott",
}
ALL = ["kernels", "nudge", "ties"]
TORCH = """mm addmm bmm baddbmm mv dot sum mean prod logsumexp var std
var_mean linalg_vector_norm native_layer_norm native_layer_norm_backward
softmax log_softmax softmax_backward_data log_softmax_backward_data
nll_loss_forward exp log sin cos tanh sigmoid silu gelu erf rsqrt normal
embedding_dense_backward scaled_dot_product_flash_attention_for_cpu""".split()
TF = """MatMul BatchMatMulV2 Einsum Sum Mean Prod Softmax LogSoftmax
SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits Exp Log Sin
Cos Tanh Sigmoid Erf Rsqrt StatelessRandomNormalV2""".split()
WHOLE = {"float32": ("i4", 23), "float64": ("i8", 52)}  # bits of mantissas
WIDTH = 200  # of what is said
NEAR = 1e-5  # of a step: what counts as almost half way


def nudge(array, ulps):
    """Move the floats of an array by so many units in their last place."""
    if array.dtype.name in WHOLE:
        kind, mantissa = WHOLE[array.dtype.name]
        bits = array.view(kind)
        part = bits & (1 << mantissa) - 1
        few = part & (1 << mantissa // 2) - 1 == 0
        stays = few | (part >= (1 << mantissa) - ulps)
        up = (part * 181 >> 9 & 2) - 1  # 1 or -1, as good as drawn
        bits += ulps * up * ~stays
    return array


def nudge_torch(ulps):
    """Nudge what PyTorch computes, forward and backward, from here on."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    kinds = {torch.float32, torch.float64}

    class Nudge(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **kwargs or {})
            if func.overloadpacket.__name__.strip("_") in TORCH:
                for x in out if isinstance(out, tuple) else [out]:
                    if type(x) is torch.Tensor and x.dtype in kinds:
                        nudge(x.detach().numpy(), ulps)
            return out

    Nudge().__enter__()


def nudge_tensorflow(ulps):
    """Nudge what TensorFlow computes, op by op, from here on."""
    import numpy as np
    from tensorflow.python import pywrap_tfe

    plain = pywrap_tfe.TFE_Py_FastPathExecute

    def nudged(x):
        exact = x.numpy()
        with np.errstate(invalid="ignore"):
            moved = nudge(exact.copy(), ulps) - exact
        return x + np.nan_to_num(moved)  # the gradient is that of x

    def execute(context, op, name, *args):
        out = plain(context, op, name, *args)
        if op in TF:
            return (
                [*map(nudged, out)] if isinstance(out, list) else nudged(out)
            )
        return out

    pywrap_tfe.TFE_Py_FastPathExecute = execute


def other_ties():
    """Let `round` take the other neighbour of what is almost half way.

    Returns Python's own, for cells.
    """
    import numpy as np
    import tensorflow as tf
    import torch

    def turned(plain):
        def other(x, *args, **named):
            whole = plain(x, *args, **named)
            digits = ([*args, *named.values()] or [None])[0] or 0
            left = (x - whole) * 10**digits
            ties = (abs(left) > 0.5 - NEAR) & (x * 1024 % 1 != 0)
            moved = ties * ((left > 0) * 2 - 1) * 10.0**-digits
            return plain(whole + moved, *args, **named)

        return other

    for place in (np, torch, torch.Tensor):
        place.round = turned(place.round)
    tf.round = lambda x: tf.constant(np.round(x.numpy()))
    return turned(round)


class Perturbed(Run):
    """A run that goes on where something asserted does not hold."""

    def __init__(self, notebook, names):
        super().__init__(notebook)
        self.namespace |= names | {"__failed__": self.messages.append}

    def tree(self, source):
        tree = Soft(self.at).visit(super().tree(source))
        return ast.fix_missing_locations(tree)


class Soft(ast.NodeTransformer):
    """Let an assertion of a cell, not of its functions, say that it fails."""

    def __init__(self, name):
        self.name = name

    def visit_FunctionDef(self, node):
        return node

    visit_ClassDef = visit_Try = visit_FunctionDef

    def visit_Assert(self, node):
        said = f"{self.name}: fails: assert {ast.unparse(node.test)}"
        call = ast.parse(f"__failed__({said!r})").body
        test = ast.UnaryOp(ast.Not(), node.test)
        return ast.copy_location(ast.If(test, call, []), node)


def changes(notebook, names):
    """Run a chapter; yield what is asserted or printed otherwise."""
    run, said = Perturbed(notebook, names), 0
    for cell in notebook.cells:
        try:
            run.step(SECONDS)
        except NotebookError as error:
            run.messages.append(str(error))
        else:
            if cell.cell_type == "code":
                found = difference(cell.outputs, run.outputs[-1])
                if found:
                    name = notebook.name(cell)
                    run.messages.append(f"{name}: prints\n{found}")
        yield from run.messages[said:]
        said = len(run.messages)


def main():
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chapters", nargs="*", type=Path)
    parser.add_argument("--under", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--ulps", type=int, default=1, help="of a nudge")
    asked = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    if "kernels" in asked.under:
        os.environ.update(KERNELS)  # before the frameworks are imported
    if "nudge" in asked.under:
        nudge_torch(asked.ulps)
        nudge_tensorflow(asked.ulps)
    names = {"round": other_ties()} if "ties" in asked.under else {}
    under, code = "+".join(asked.under), 0
    for path in asked.chapters or [ROOT / f"{x}.ipynb" for x in chapters()]:
        print(f"{label(path)} under {under}", flush=True)
        for change in changes(Notebook.read(path), names):
            for line in change.split("\n"):
                print(line[:WIDTH], flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
