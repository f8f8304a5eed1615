#!/usr/bin/python3
"""Make the golden files that tests/test_golden_rnn.c compares the library with.

    tools/golden_rnn.py

Needs Debian's python3-torch and python3-numpy; takes some seconds; is run by
hand when a case below changes. See golden.py, whose random numbers give both
sides the same parameters and inputs.

For each case it writes tests/golden/NAME.txt with, from PyTorch in float64, a
digest (size, norm, largest entry, projections, samples) of every output, last
state and gradient of recurrent layers under a loss; for language models, of
the gradients at the first step, and the losses of the first steps of SGD, the
states carried from each step to the next.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden import (FOR_INIT, FOR_TEST, OUT, PROJECTIONS, SAMPLES, WEIGHT_SEED,
                    signs, uniform, words)

T, N, IN = 9, 3, 5  # of layers
LM_T, LM_N, WORDS, WIDE, STEPS, LR = 5, 4, 50, 16, 20, 0.5
BOUND, EMBEDDING_BOUND = 0.5, 1.0
DATA_SEED = 3

LAYERS = {  # name: kind, hidden, layers, both directions
    "lstm": (nn.LSTM, 13, 2, False),
    "gru": (nn.GRU, 13, 2, False),
    "lstm-both": (nn.LSTM, 7, 2, True),
    "gru-both": (nn.GRU, 7, 2, True),
}
MODELS = {  # name: tied, biases, rank of all matrices or 0
    "lm-tied-1": (True, 1, 0),
    "lm-tied-2": (True, 2, 0),
    "lm-untied-1": (False, 1, 0),
    "lm-untied-2": (False, 2, 0),
    "lm-rank": (True, 1, 3),
}


def random(name, *shape, seed=DATA_SEED):
    x = uniform(seed, FOR_TEST, name, int(np.prod(shape)), -1, 1)
    return torch.from_numpy(x.reshape(shape)).double()


def tokens(seed, name, *shape):
    w = words(seed, FOR_TEST, name, int(np.prod(shape))) % np.uint64(WORDS)
    return torch.from_numpy(w.astype(np.int64).reshape(shape))


def bound_of(name, rank):
    """Of a product of factors, the spread is that of the matrix."""
    if name == "encoder.weight":
        return EMBEDDING_BOUND
    if name.endswith(("_u.weight", "_v.weight")):
        return np.sqrt(BOUND) * (3 / rank) ** 0.25
    return BOUND


def initialise(net, rank=0):
    """As sp_params_init() does; a second bias that is not there is zero."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            bound = bound_of(name, rank)
            x = np.float32(bound) * uniform(WEIGHT_SEED, FOR_INIT, name,
                                            p.numel(), -1, 1)
            p.copy_(torch.from_numpy(x).reshape(p.shape))
            if not p.requires_grad:
                p.zero_()


def digest(kind, name, x):
    x = x.detach().numpy().reshape(-1)
    at = words(WEIGHT_SEED, FOR_TEST, "sample " + name, SAMPLES) % np.uint64(
        x.size)
    fields = [kind, name, str(x.size), f"{np.sqrt((x * x).sum()):.9g}",
              f"{np.abs(x).max():.9g}"]
    fields += [f"{signs(WEIGHT_SEED, name, j, x.size) @ x:.9g}"
               for j in range(PROJECTIONS)]
    fields += [f"{i} {x[int(i)]:.9g}" for i in at]
    return " ".join(fields)


def gradients(net):
    return [digest("gradient", n, p.grad) for n, p in net.named_parameters()
            if p.requires_grad]


class Layers(nn.Module):
    def __init__(self, kind, hidden, layers, both):
        super().__init__()
        self.rnn = kind(IN, hidden, layers, bidirectional=both)


def layers(kind, hidden, count, both):
    net = Layers(kind, hidden, count, both).double()
    initialise(net)
    x = random("x", T, N, IN).requires_grad_()
    first = {}
    if not both:
        for s in "hc" if kind is nn.LSTM else "h":
            first[s] = [random(f"rnn.{s}_l{i}", 1, N, hidden).requires_grad_()
                        for i in range(count)]
    states = tuple(torch.cat(v) for v in first.values())
    if not states:
        y, last = net.rnn(x)
    else:
        y, last = net.rnn(x, states if kind is nn.LSTM else states[0])
    last = last if kind is nn.LSTM else (last,)
    label = words(DATA_SEED, FOR_TEST, "label", T * N) % np.uint64(y.shape[2])
    F.cross_entropy(y.reshape(T * N, -1),
                    torch.from_numpy(label.astype(np.int64))).backward()
    lines = [digest("value", "y", y)]
    for s, values in zip(first, last):
        lines += [digest("value", f"rnn.{s}_l{i}", values[i])
                  for i in range(count)]
    lines += gradients(net) + [digest("gradient", "x", x.grad)]
    for s, values in first.items():
        lines += [digest("gradient", f"rnn.{s}_l{i}", v.grad)
                  for i, v in enumerate(values)]
    return lines


class LowRank(nn.Module):
    """nn.LSTM over products of factors, gate by gate."""

    def __init__(self, inputs, hidden, layers, rank):
        super().__init__()
        self.layers = layers
        for i in range(layers):
            for kind, size in (("ih", hidden if i else inputs),
                               ("hh", hidden)):
                name = f"weight_{kind}_l{i}"
                self.add_module(name + "_u",
                                nn.Linear(size, 4 * rank, bias=False))
                self.add_module(name + "_v",
                                nn.Linear(rank, 4 * hidden, bias=False))
            for kind in "ih", "hh":
                self.register_parameter(
                    f"bias_{kind}_l{i}",
                    nn.Parameter(torch.zeros(4 * hidden)))

    def matrix(self, name):
        u = getattr(self, name + "_u").weight.chunk(4)
        v = getattr(self, name + "_v").weight.chunk(4)
        return torch.cat([b @ a for a, b in zip(u, v)])

    def forward(self, x, state):
        weights = []
        for i in range(self.layers):
            weights += [self.matrix(f"weight_{k}_l{i}")
                        for k in ("ih", "hh")]
            weights += [getattr(self, f"bias_{k}_l{i}")
                        for k in ("ih", "hh")]
        y, h, c = torch.lstm(x, state, weights, True, self.layers, 0.0,
                             True, False, False)
        return y, (h, c)


class Model(nn.Module):
    def __init__(self, tied, biases, rank):
        super().__init__()
        self.encoder = nn.Embedding(WORDS, WIDE)
        self.rnn = (LowRank(WIDE, WIDE, 2, rank) if rank else
                    nn.LSTM(WIDE, WIDE, 2))
        self.decoder = nn.Linear(WIDE, WORDS)
        if tied:
            self.decoder.weight = self.encoder.weight
        for name, p in self.rnn.named_parameters():
            if biases == 1 and "bias_hh" in name:
                p.requires_grad = False


def model(tied, biases, rank):
    net = Model(tied, biases, rank).double()
    initialise(net, rank)
    state = (torch.zeros(2, LM_N, WIDE).double(),) * 2
    sgd = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], LR)
    losses = []
    for step in range(STEPS):
        x = tokens(DATA_SEED + step, "token", LM_T, LM_N)
        label = tokens(DATA_SEED + step, "label", LM_T * LM_N)
        y, state = net.rnn(net.encoder(x), state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(net.decoder(y).reshape(LM_T * LM_N, -1), label)
        losses.append(f"loss {loss.item():.9g}")
        sgd.zero_grad()
        loss.backward()
        if step == 0:
            lines = gradients(net)
        sgd.step()
    return lines + losses


def write(name, lines):
    head = (f"# Made by tools/golden_rnn.py with PyTorch {torch.__version__} "
            "in float64.")
    (OUT / (name + ".txt")).write_text("\n".join([head] + lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for case, args in LAYERS.items():
        write(case, layers(*args))
    for case, args in MODELS.items():
        write(case, model(*args))
