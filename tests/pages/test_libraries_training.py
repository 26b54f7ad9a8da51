"""What libraries.md says of training is what the libraries give."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


def test_the_gradient_of_a_lookup(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    ids = [2, 2, 2, 2]
    table = torch.nn.Embedding(3, 1, _weight=torch.zeros(3, 1))
    table(torch.tensor(ids)).sum().backward()
    torch.optim.Adam(table.parameters(), lr=0.01).step()

    def move(repair):
        """Return how far Keras' Adam moves the row, by what gradient."""
        table = keras.Variable(tf.zeros((3, 1)))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table.value, ids))
        gradient = repair(tape.gradient(loss, table.value))
        keras.optimizers.Adam(0.01).apply([gradient], [table])
        return -table[2, 0]

    check_numbers(
        lookup_move_torch=-table.weight[2].item(),
        lookup_move_keras=move(lambda gradient: gradient),
        lookup_move_repaired_keras=move(tf.convert_to_tensor),
    )


def test_the_epsilon_of_adam(check_numbers):
    import keras
    import tensorflow as tf
    import torch

    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.full((1,), 1e-6)
    torch.optim.Adam([weight], lr=0.01).step()
    weight_keras = keras.Variable([0.0])
    keras.optimizers.Adam(0.01).apply([tf.constant([1e-6])], [weight_keras])
    check_numbers(
        first_step_torch=-weight.item(), first_step_keras=-weight_keras[0]
    )


def test_what_a_loss_is_divided_by(check_numbers):
    import keras
    import torch

    # Logits of two tokens with the same score cost ln 2; in units of that.
    logits, targets = np.zeros((4, 2)), np.array([1, 1, 0, 0])
    loss = torch.nn.functional.cross_entropy(
        torch.tensor(logits), torch.tensor(targets), ignore_index=0
    )

    def mean_loss(**options):
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, **options
        )
        mean = loss(targets, logits, sample_weight=targets != 0)
        return float(mean) / np.log(2)

    check_numbers(
        mean_loss_torch=loss / np.log(2),
        mean_loss_keras=mean_loss(),
        mean_loss_weighted_keras=mean_loss(
            reduction="mean_with_sample_weight"
        ),
    )


def test_texts_that_share_a_row(check_numbers):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = dict(vocab_size=13, hidden_size=8, intermediate_size=8)
    sizes |= dict(num_hidden_layers=1, num_attention_heads=2)
    model = LlamaForCausalLM(LlamaConfig(**sizes)).train()
    positions = torch.tensor([[0, 1, 2, 0, 1]])

    def read(**given):
        """Return how many tokens the last one depends on."""
        x = torch.randn(1, 5, 8, requires_grad=True)
        found = model(inputs_embeds=x, position_ids=positions, **given)
        found.logits[0, -1].square().sum().backward()
        return (x.grad.abs().sum(-1) > 0).sum()

    ones = torch.ones(1, 5).long()
    check_numbers(
        packed_read=read(),
        packed_read_uncached=read(use_cache=False),
        packed_read_masked=read(use_cache=False, attention_mask=ones),
    )


def test_the_scale_of_lora(check_numbers):
    import keras
    import peft
    import torch

    def of_peft(**given):
        config = peft.LoraConfig(r=4, target_modules=["0"], **given)
        model = torch.nn.Sequential(torch.nn.Linear(6, 6))
        layer = peft.inject_adapter_in_model(config, model)[0]
        trained = [w for w in layer.parameters() if w.requires_grad]
        return layer.scaling["default"], len(trained)

    def of_keras(**given):
        layer = keras.layers.Dense(6)
        layer.build((None, 6))
        layer.enable_lora(4, **given)
        before = layer.kernel.numpy()
        layer.lora_kernel_b.assign(np.ones((4, 6)))
        added = layer.kernel.numpy() - before
        product = layer.lora_kernel_a.numpy() @ np.ones((4, 6))
        scale = (added * product).sum() / (product * product).sum()
        return scale, len(layer.trainable_variables)

    scale, trained = of_peft(lora_alpha=16)
    scale_keras, trained_keras = of_keras(lora_alpha=16)
    check_numbers(
        lora_scale_peft=scale,
        lora_scale_keras=scale_keras,
        lora_scale_root=of_peft(lora_alpha=16, use_rslora=True)[0],
        lora_scale_default_peft=of_peft()[0],
        lora_scale_default_keras=of_keras()[0],
        lora_trained_peft=trained,
        lora_trained_keras=trained_keras,
    )


ON_TWO = """
import sys

import torch
import torch.distributed as dist
from torch.distributed import nn as by_torch

rank, meet = int(sys.argv[1]), f"file://{sys.argv[2]}"
dist.init_process_group("gloo", meet, rank=rank, world_size=2)
ids = torch.tensor([[1], [0, 0, 0]][rank])
table = torch.nn.Embedding(2, 2, _weight=torch.zeros(2, 2))
model = torch.nn.parallel.DistributedDataParallel(table)
torch.nn.functional.cross_entropy(model(ids), 0 * ids).backward()
weight = torch.ones((), requires_grad=True)
by_torch.all_reduce(weight).backward()
print(-2 * table.weight.grad[1, 0].item(), weight.grad.item())
dist.destroy_process_group()
"""
MIRRORED = """
import keras
import os
import subprocess
import sys

import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
ids = np.array([[1, 0, 0], [0, 0, 0]])
targets = np.array([[0, -1, -1], [0, 0, 0]])
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    model = keras.Sequential([keras.layers.Embedding(2, 2, "zeros")])
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1
    )
    model.compile(keras.optimizers.SGD(1.0), loss)
    model.build((None, 3))
model.fit(ids, targets, batch_size=2, shuffle=False, verbose=0)
print(2 * model.get_weights()[0][1, 0])
"""


def last_lines(program, *arguments):
    """Run a program once for each list of arguments, at the same time.

    Returns the numbers in the last line that each prints.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, *given],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for given in arguments
    ]
    try:
        said = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert not any(process.returncode for process in running)
    return [[*map(float, text.splitlines()[-1].split())] for text in said]


def test_two_machines(check_numbers, tmp_path):
    import torch

    from cellbycell.pytorch import add_up, run_on

    def work(machine):
        weight = torch.ones((), requires_grad=True)
        add_up(weight, machine).backward()
        return weight.grad

    meet = str(tmp_path / "meet")
    (share, gradient), _ = last_lines(ON_TWO, ["0", meet], ["1", meet])
    ((mirrored,),) = last_lines(MIRRORED, [])
    check_numbers(
        token_share_ddp=share,
        token_share_mirrored=mirrored,
        sum_gradient_torch=gradient,
        sum_gradient_here=run_on(2, work)[0],
    )
