#!/usr/bin/python3
"""Make the golden files that tests/test_golden.c compares the library with.

    tools/golden.py [NAME ...]

Needs Debian's python3-torch and python3-numpy; takes some minutes;
is run by hand when a model's definition or the initial values change.
The tests themselves need no Python.

For each network below it writes tests/golden/NAME.txt with, from PyTorch in
float64: the gradient of every parameter at the first step (norm, largest
entry, projections, samples), the losses of the first steps of momentum SGD,
and the loss in evaluation mode after them. Neither weights nor inputs are
stored: both sides compute them from counter-based random numbers, so that this
script is also a second implementation of src/base/random.c and of the models'
initial values.

A ReLU near its kink, or a tie in a max pooling, makes any two float32
programs differ by far more than their rounding, and in a deep network one such
flip soon brings others. So the data's seed is the one of several that keeps
every ReLU and every pooling farthest from flipping, relative to the size of
what it reads. Then PyTorch's own two float32 layouts must agree with float64.
"""
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
FOR_INIT, FOR_TEST = 1, 8  # enum sp_purpose
CLASSES, SIZE = 10, 32
SEEDS = range(1, 2001, 100)  # of data; those between are later steps'
AGREE = 3e-5  # float32 with float64 in the gradients,
AGREE_LOSS = 1e-4  # and in the losses
SAMPLES, PROJECTIONS = 8, 3
LR, MOMENTUM, DECAY = 0.001, 0.9, 1e-4
WEIGHT_SEED = 1

# ---- Random numbers, as include/sprat/random.h says --------------------------

MASK32 = np.uint64(0xFFFFFFFF)


def philox(seed, purpose, a, b):
    """sp_random() for an array of b: four arrays of 32-bit words."""
    b = np.asarray(b, dtype=np.uint64)
    high = (purpose << 24) | (a >> 32)
    c = [b & MASK32, b >> np.uint64(32),
         np.full_like(b, a & 0xFFFFFFFF), np.full_like(b, high)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & MASK32,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & MASK32]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def name_hash(name):
    """sp_name_hash(): FNV-1a of 64 bits, folded to 56."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (h >> 56) ^ (h & 0xFFFFFFFFFFFFFF)


def words(seed, purpose, name, n):
    """The first n words of a name, four to a block."""
    blocks = philox(seed, purpose, name_hash(name), np.arange((n + 3) // 4))
    return np.stack(blocks, axis=1).reshape(-1)[:n]


def uniform(seed, purpose, name, n, low, high):
    """Floats in [low, high); exact when low and high are small powers of 2."""
    unit = (words(seed, purpose, name, n) >> np.uint64(8)) * 2.0 ** -24
    return (low + (high - low) * unit).astype(np.float32)


def normal(seed, purpose, name, n):
    """sp_normal() of pairs of words (Box and Muller)."""
    w = words(seed, purpose, name, 2 * n).astype(np.float64)
    radius = np.sqrt(-2 * np.log((w[0::2] + 1) * 2.0 ** -32))
    return (radius * np.cos(2 * math.pi * w[1::2] * 2.0 ** -32)).astype(
        np.float32)


def signs(seed, name, j, n):
    """Projection j: +1 or -1 for every element, 128 to a block."""
    first = j << 32
    blocks = philox(seed, FOR_TEST, name_hash(name),
                    np.arange(first, first + (n + 127) // 128))
    w = np.stack(blocks, axis=1).astype("<u4")
    bits = np.unpackbits(w.view(np.uint8).reshape(-1), bitorder="little")[:n]
    return 1.0 - 2.0 * bits


def images(seed, batch):
    x = uniform(seed, FOR_TEST, "image", batch * SIZE * SIZE * 3, -2, 2)
    return torch.from_numpy(x.reshape(batch, SIZE, SIZE, 3)).permute(
        0, 3, 1, 2).contiguous()


def labels(seed, batch):
    w = words(seed, FOR_TEST, "label", batch) % np.uint64(CLASSES)
    return torch.from_numpy(w.astype(np.int64))


# ---- Networks ----------------------------------------------------------------


class Relu(nn.Module):
    margin = math.inf  # to the nearest kink, relative to the input's size

    def forward(self, x):
        with torch.no_grad():
            size = (x * x).mean().sqrt()
            self.margin = (x.abs().min() / size).item()
        return F.relu(x)


class MaxPool(nn.Module):
    margin = math.inf  # to the nearest tie of positive values

    def forward(self, x):
        with torch.no_grad():
            n, c, h, w = x.shape
            top = x.reshape(n, c, h // 2, 2, w // 2, 2).permute(
                0, 1, 2, 4, 3, 5).reshape(-1, 4).topk(2, 1).values
            gap = (top[:, 0] - top[:, 1])[top[:, 0] > 0]
            size = (x * x).mean().sqrt()
            self.margin = (gap.min() / size).item() if len(gap) else math.inf
        return F.max_pool2d(x, 2)


class OptionA(nn.Module):
    """Every second pixel, and zeros for the new channels."""

    def __init__(self, stride, extra):
        super().__init__()
        self.stride, self.extra = stride, extra

    def forward(self, x):
        x = x[:, :, ::self.stride, ::self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.extra))


class Block(nn.Module):
    def __init__(self, cin, cout, stride, option_a):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.relu1, self.relu2 = Relu(), Relu()
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = (
                OptionA(stride, cout - cin) if option_a else
                nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                              nn.BatchNorm2d(cout)))

    def forward(self, x):
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu2(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, blocks, widths, option_a):
        super().__init__()
        c = widths[0]
        self.conv1 = nn.Conv2d(3, c, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c)
        self.relu = Relu()
        self.stages = len(widths)
        for i, width in enumerate(widths):
            stage = []
            for k in range(blocks):
                stride = 2 if i > 0 and k == 0 else 1
                stage.append(Block(c, width, stride, option_a))
                c = width
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
        self.fc = nn.Linear(c, CLASSES)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Vgg19(nn.Module):
    def __init__(self, width):
        super().__init__()
        features, c = [], 3
        for convs, factor in (2, 1), (2, 2), (4, 4), (4, 8), (4, 8):
            for _ in range(convs):
                features += [
                    nn.Conv2d(c, factor * width, 3, 1, 1, bias=False),
                    nn.BatchNorm2d(factor * width), Relu()]
                c = factor * width
            features.append(MaxPool())
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(0), nn.Linear(c, c), Relu(),
            nn.Dropout(0), nn.Linear(c, c), Relu(), nn.Linear(c, CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


# name: (settings of the model as in a configuration, network, batch, steps,
# range of batch norm's shifts). In a network without shortcuts only shifts
# that keep most values above zero keep flips rare enough for 20 steps; behind
# a global pooling the same shifts would have hardly any gradient.
CASES = {
    "resnet20": ("name=resnet depth=20 shortcut=A",
                 lambda: ResNet(3, (16, 32, 64), True), 4, 20, (-0.5, 0.5)),
    "resnet18": ("name=resnet depth=18 stem_norm=true",
                 lambda: ResNet(2, (64, 128, 256, 512), False), 2, 5,
                 (-0.5, 0.5)),
    "resnet18-narrow": ("name=resnet depth=18 stem_norm=true width=0.25",
                        lambda: ResNet(2, (16, 32, 64, 128), False), 2, 20,
                        (-0.5, 0.5)),
    "vgg19": ("name=vgg depth=19 fc=3 dropout=0", lambda: Vgg19(64), 2, 5,
              (0.5, 1)),
    "vgg19-narrow": ("name=vgg depth=19 fc=3 dropout=0 width=0.25",
                     lambda: Vgg19(16), 2, 20, (0.5, 1)),
}

# ---- Initial values ----------------------------------------------------------


def initial(net, shifts):
    """Every parameter as sp_params_init() sets it, but batch norm's, whose
    1 and 0 would hide mistakes."""
    values = {}
    for name, module in net.named_modules():
        if isinstance(module, nn.Conv2d):
            w = module.weight
            fan_out = w.shape[0] * w[0, 0].numel()
            std = np.sqrt(np.float32(2) / np.float32(fan_out))
            values[name + ".weight"] = std * normal(
                WEIGHT_SEED, FOR_INIT, name + ".weight", w.numel())
        elif isinstance(module, nn.Linear):
            bound = np.float32(1) / np.sqrt(np.float32(module.in_features))
            for part in "weight", "bias":
                n = getattr(module, part).numel()
                values[f"{name}.{part}"] = bound * uniform(
                    WEIGHT_SEED, FOR_INIT, f"{name}.{part}", n, -1, 1)
        elif isinstance(module, nn.BatchNorm2d):
            n = module.num_features
            values[name + ".weight"] = uniform(
                WEIGHT_SEED, FOR_TEST, name + ".weight", n, 0.5, 1)
            values[name + ".bias"] = uniform(
                WEIGHT_SEED, FOR_TEST, name + ".bias", n,
                *shifts)
    return values


def load(net, values):
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(values[name]).reshape(p.shape))
        for name, b in net.named_buffers():
            b.fill_(1 if name.endswith("running_var") else 0)


# ---- Measuring ---------------------------------------------------------------


def gradients(make, values, seed, batch, dtype, layout):
    net = make().to(dtype=dtype, memory_format=layout)
    load(net, values)
    x = images(seed, batch).to(dtype).contiguous(memory_format=layout)
    loss = F.cross_entropy(net(x), labels(seed, batch))
    loss.backward()
    return {n: p.grad.double().contiguous() for n, p in net.named_parameters()}


def disagreement(a, b):
    """The largest over all parameters, against norm and largest entry."""
    return max(max(((a[n] - b[n]).norm() / b[n].norm()).item(),
                   ((a[n] - b[n]).abs().max() / b[n].abs().max()).item())
               for n in b)


def find_seed(make, values, batch):
    """The data seed with the largest margin at the first step."""
    net = make().double()
    load(net, values)
    margins = {}
    for seed in SEEDS:
        with torch.no_grad():
            net(images(seed, batch).double())
        margins[seed] = min(m.margin for m in net.modules()
                            if hasattr(m, "margin"))
    best = max(margins, key=margins.get)
    print(f"  seed {best}: margin {margins[best]:.1e}", flush=True)
    return best


def losses(make, values, seed, batch, steps, dtype, layout):
    """Of each step, with new data each time, then of the trained network in
    evaluation mode."""
    net = make().to(dtype=dtype, memory_format=layout)
    load(net, values)
    sgd = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM,
                          weight_decay=DECAY)
    found = []
    for step in range(steps + 1):
        net.train(step < steps)
        x = images(seed + step, batch).to(dtype).contiguous(
            memory_format=layout)
        loss = F.cross_entropy(net(x), labels(seed + step, batch))
        found.append(loss.item())
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    return found


def gradient_line(name, g):
    g = g.numpy().reshape(-1)
    at = words(WEIGHT_SEED, FOR_TEST, "sample " + name, SAMPLES) % np.uint64(
        g.size)
    fields = ["gradient", name, str(g.size), f"{np.sqrt((g * g).sum()):.9g}",
              f"{np.abs(g).max():.9g}"]
    fields += [f"{signs(WEIGHT_SEED, name, j, g.size) @ g:.9g}"
               for j in range(PROJECTIONS)]
    fields += [f"{i} {g[int(i)]:.9g}" for i in at]
    return " ".join(fields)


LAYOUTS = torch.contiguous_format, torch.channels_last


def check(what, errors, limit):
    print(f"  {what} in float32 differ by "
          + ", ".join(f"{e:.1e}" for e in errors), flush=True)
    if max(errors) > limit:
        sys.exit(f"more than {limit}: try more seeds or another batch size")


def write(name):
    settings, make, batch, steps, shifts = CASES[name]
    print(name, flush=True)
    values = initial(make(), shifts)
    seed = find_seed(make, values, batch)
    exact = gradients(make, values, seed, batch, torch.float64, LAYOUTS[0])
    found = losses(make, values, seed, batch, steps, torch.float64, LAYOUTS[0])
    check("gradients", [disagreement(
        gradients(make, values, seed, batch, torch.float32, layout), exact)
        for layout in LAYOUTS], AGREE)
    check("losses", [max(abs(a - b) / b for a, b in zip(
        losses(make, values, seed, batch, steps, torch.float32, layout),
        found)) for layout in LAYOUTS], AGREE_LOSS)
    lines = [f"# Made by tools/golden.py with PyTorch {torch.__version__} in "
             "float64.", "model " + settings,
             f"optim name=sgd lr={LR:g} momentum={MOMENTUM:g} "
             f"weight_decay={DECAY:g}",
             f"seeds {WEIGHT_SEED} {seed}", f"batch {batch}",
             f"shifts {shifts[0]:g} {shifts[1]:g}"]
    lines += [gradient_line(n, g) for n, g in exact.items()]
    lines += [f"loss {x:.9g}" for x in found[:-1]]
    lines.append(f"eval {found[-1]:.9g}")
    (OUT / (name + ".txt")).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for chosen in sys.argv[1:] or CASES:
        if chosen not in CASES:
            sys.exit(f"{chosen}: no such network; there are "
                     + ", ".join(CASES))
        write(chosen)
