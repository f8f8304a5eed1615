#!/usr/bin/python3
"""Make the small files by PyTorch and NumPy that tests/test_foreign.c reads.

    tools/golden_arrays.py

Needs Debian's python3-torch and python3-numpy. The tests need no Python: they
know these numbers from the formulas below.
"""
import pathlib
from collections import OrderedDict

import numpy as np
import torch

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"


def count(n, dtype=torch.float32):
    """0, 1/4, 2/4, ...: no kind of number rounds them."""
    return (torch.arange(n, dtype=torch.float64) / 4).to(dtype)


def pytorch():
    """All that a state dict may hold, as a checkpoint of parallel training."""
    whole = count(20)
    state = OrderedDict([
        ("module.plain", count(24).reshape(2, 3, 4)),
        ("module.turned", count(12).reshape(3, 4).t()),
        ("module.part", whole[4:16].reshape(4, 3)[:, 1]),
        ("module.half", count(6, torch.float16)),
        ("module.bfloat16", count(6, torch.bfloat16)),
        ("module.double", count(6, torch.float64)),
        ("module.parameter", torch.nn.Parameter(count(5))),
        ("module.num_batches_tracked", torch.tensor(7)),
        ("module.empty", torch.zeros(0, 3)),
    ])
    torch.save({"epoch": 3, "best": 0.5, "name": "golden", "flags": [True, None],
                "state_dict": state,
                "optimizer": {"state": {0: {"momentum_buffer": count(3)}}}},
               OUT / "state-dict.pth")


def numpy():
    a = np.arange(12).reshape(3, 4) / 4
    np.savez_compressed(OUT / "arrays.npz", plain=a.astype("<f4"),
                        turned=np.asfortranarray(a), half=a.astype("<f2"),
                        number=np.float32(2.5), whole=np.arange(5))


if __name__ == "__main__":
    pytorch()
    numpy()
