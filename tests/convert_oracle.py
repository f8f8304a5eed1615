#!/usr/bin/python3
"""Other programs' view of exported weights, and weights by PyTorch.

    convert_oracle.py begin EXPORTED IMPORTED
    convert_oracle.py end EXPORTED IMPORTED

Both arguments are names of NETWORKS below, apart by spaces: written here as
PyTorch's users write them, in torch.nn's modules. `begin` makes random inputs
ours/NAME.in and theirs/NAME.in, and for every imported network the state dict
theirs/NAME.pth by torch.save(), and its logits theirs/NAME.theirs.

In between the program has trained and exported ours/NAME.safetensors, .npz and
.onnx, or imported theirs/NAME.pth, and written the logits NAME.mine beside.
`end` loads each exported .safetensors into its network, strictly, and compares
logits; then .npz with it; then the .onnx, where there is one, by onnx's
checker, by an evaluator of its operators in PyTorch's functions, and by OpenCV.
Of what was imported it compares the logits.

Needs torch, numpy, onnx and cv2. Status 77: one of them is missing.
"""
import json
import pathlib
import sys

try:
    import cv2
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

TOLERANCE = 1e-5  # of the largest logit


# ---- Networks ---------------------------------------------------------------


def conv(parent, name, cin, cout, kernel, stride=1, ranks=()):
    """A convolution, or the two that it is of low rank, a norm between."""
    pad = kernel // 2
    if name not in ranks:
        parent.add_module(name, nn.Conv2d(cin, cout, kernel, stride, pad,
                                          bias=False))
        return
    point = kernel == 1
    parent.add_module(name + "_u", nn.Conv2d(
        cin, ranks[name], kernel, 1 if point else stride, pad, bias=False))
    parent.add_module(name + "_u_norm", nn.BatchNorm2d(ranks[name]))
    parent.add_module(name + "_v", nn.Conv2d(
        ranks[name], cout, 1, stride if point else 1, bias=False))


def apply(parent, name, x):
    if hasattr(parent, name):
        return getattr(parent, name)(x)
    for part in ("_u", "_u_norm", "_v"):
        x = getattr(parent, name + part)(x)
    return x


class OptionA(nn.Module):
    def __init__(self, cout, stride):
        super().__init__()
        self.cout, self.stride = cout, stride

    def forward(self, x):
        x = x[:, :, ::self.stride, ::self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.cout - x.shape[1]))


def shortcut(cin, cout, stride, option):
    if cin == cout and stride == 1:
        return None
    if option == "A":
        return OptionA(cout, stride)
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                         nn.BatchNorm2d(cout))


class Block(nn.Module):
    def __init__(self, cin, cout, stride, option, ranks):
        super().__init__()
        conv(self, "conv1", cin, cout, 3, stride, ranks)
        self.bn1 = nn.BatchNorm2d(cout)
        conv(self, "conv2", cout, cout, 3, 1, ranks)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = shortcut(cin, cout, stride, option)

    def forward(self, x):
        skip = self.downsample(x) if self.downsample else x
        y = F.relu(self.bn1(apply(self, "conv1", x)))
        return F.relu(self.bn2(apply(self, "conv2", y)) + skip)


class Bottleneck(nn.Module):
    def __init__(self, cin, cout, stride, option, ranks):
        super().__init__()
        inner = cout // 4
        conv(self, "conv1", cin, inner, 1, 1, ranks)
        self.bn1 = nn.BatchNorm2d(inner)
        conv(self, "conv2", inner, inner, 3, stride, ranks)
        self.bn2 = nn.BatchNorm2d(inner)
        conv(self, "conv3", inner, cout, 1, 1, ranks)
        self.bn3 = nn.BatchNorm2d(cout)
        self.downsample = shortcut(cin, cout, stride, option)

    def forward(self, x):
        skip = self.downsample(x) if self.downsample else x
        y = F.relu(self.bn1(apply(self, "conv1", x)))
        y = F.relu(self.bn2(apply(self, "conv2", y)))
        return F.relu(self.bn3(apply(self, "conv3", y)) + skip)


class ResNet(nn.Module):
    def __init__(self, blocks, channels, option, block=Block, imagenet=False,
                 classes=10, ranks=None):
        super().__init__()
        ranks = ranks or {}
        first = channels[0] // (4 if block is Bottleneck else 1)
        self.imagenet = imagenet
        self.conv1 = nn.Conv2d(3, first, 7, 2, 3, bias=False) if imagenet \
            else nn.Conv2d(3, first, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        cin = first
        for i, (n, cout) in enumerate(zip(blocks, channels)):
            layer = []
            for j in range(n):
                here = f"layer{i + 1}.{j}."
                layer.append(block(
                    cin, cout, 2 if i and not j else 1, option,
                    {k[len(here):]: r for k, r in ranks.items()
                     if k.startswith(here)}))
                cin = cout
            self.add_module(f"layer{i + 1}", nn.Sequential(*layer))
        self.stages = len(blocks)
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if self.imagenet:
            x = F.max_pool2d(x, 3, 2, 1)
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def features(convs, width, bias):
    layers, cin = [], 3
    for n, channels in zip(convs, (64, 128, 256, 512, 512)):
        cout = round(channels * width)
        for _ in range(n):
            layers += [nn.Conv2d(cin, cout, 3, padding=1, bias=bias),
                       nn.BatchNorm2d(cout), nn.ReLU()]
            cin = cout
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers), cin


class SingleVGG(nn.Module):
    """One linear layer, behind an average pooling."""

    def __init__(self):
        super().__init__()
        self.features, cin = features((1, 1, 2, 2, 2), 0.125, False)
        self.features[-1] = nn.AvgPool2d(2)
        self.classifier = nn.Linear(cin, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class VGG(nn.Module):
    """Images of 64 x 64: the first linear layer sees 2 x 2 pixels."""

    def __init__(self, torchvision=False):
        super().__init__()
        self.features, cin = features((1, 1, 2, 2, 2), 0.125, torchvision)
        hidden = 64
        first = [nn.Linear(4 * cin, hidden), nn.ReLU()]
        middle = [nn.Linear(hidden, hidden), nn.ReLU()]
        drop = [nn.Dropout()]
        parts = first + drop + middle + drop if torchvision \
            else drop + first + drop + middle
        self.classifier = nn.Sequential(*parts, nn.Linear(hidden, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class AlexNet(nn.Module):
    """Its width is 1/8, and it has two groups."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 11, 4), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(12, 32, 5, padding=2, groups=2), nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(),
            nn.Conv2d(48, 48, 3, padding=1, groups=2), nn.ReLU(),
            nn.Conv2d(48, 32, 3, padding=1, groups=2), nn.ReLU(),
            nn.MaxPool2d(3, 2))
        self.classifier = nn.Sequential(
            nn.Dropout(), nn.Linear(32, 512), nn.ReLU(), nn.Dropout(),
            nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Language(nn.Module):
    """The model of PyTorch's example, its encoder and decoder tied if asked."""

    def __init__(self, tied):
        super().__init__()
        self.encoder = nn.Embedding(50, 12)
        self.rnn = nn.LSTM(12, 12, 2)
        self.decoder = nn.Linear(12, 50)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0])


def ranks_of(state):
    """Layer -> rank, as the file's factors have them."""
    end = "_u.weight"
    return {k[:-len(end)]: v.shape[0] for k, v in state.items()
            if k.endswith(end)}


NETWORKS = {
    "resnet20-a": lambda s: ResNet((3, 3, 3), (16, 32, 64), "A"),
    "resnet14-b": lambda s: ResNet((2, 2, 2), (8, 16, 32), "B"),
    "resnet50": lambda s: ResNet((3, 4, 6, 3), (32, 64, 128, 256), "B",
                                 Bottleneck, imagenet=True),
    "lowrank": lambda s: ResNet((2, 2, 2, 2), (8, 16, 32, 64), "B",
                                ranks=ranks_of(s)),
    "vgg11": lambda s: VGG(),
    "vgg11-torchvision": lambda s: VGG(torchvision=True),
    "vgg11-single": lambda s: SingleVGG(),
    "alexnet": lambda s: AlexNet(),
    "language": lambda s: Language(False),
    "language-tied": lambda s: Language(True),
}


# ---- Files -------------------------------------------------------------------


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + n])
    header.pop("__metadata__", None)
    types = {"F32": "<f4", "I64": "<i8"}
    state = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        a = np.frombuffer(raw[8 + n + begin:8 + n + end], types[t["dtype"]])
        state[name] = torch.from_numpy(a.reshape(t["shape"]).copy())
    return state


def read_inputs(path, like):
    raw = np.fromfile(path, "<f4" if like else "<i4")
    if like:
        return torch.from_numpy(raw.reshape(-1, *like))
    return torch.from_numpy(raw.astype(np.int64)).unsqueeze(1)


def compare(what, mine, theirs):
    mine = np.asarray(mine).reshape(-1)
    theirs = np.asarray(theirs).reshape(-1)
    if mine.shape != theirs.shape:
        print(f"{what}: {mine.size} logits, not {theirs.size}")
        sys.exit(1)
    error = np.abs(mine - theirs).max() / np.abs(theirs).max()
    print(f"{what}: {theirs.size} logits, largest difference {error:.1e}")
    if not error <= TOLERANCE:
        sys.exit(1)


# ---- ONNX --------------------------------------------------------------------


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def evaluate(graph, x):
    """The operators by their definitions, in PyTorch's functions."""
    values = {w.name: torch.from_numpy(onnx.numpy_helper.to_array(w).copy())
              for w in graph.initializer}
    values[graph.input[0].name] = x
    for node in graph.node:
        a = attributes(node)
        i = [values[name] for name in node.input]
        pad = a.get("pads", [0, 0])[:2]
        if node.op_type == "Conv":
            y = F.conv2d(i[0], i[1], i[2] if len(i) > 2 else None,
                         a["strides"], pad, groups=a["group"])
        elif node.op_type == "BatchNormalization":
            y = F.batch_norm(i[0], i[3], i[4], i[1], i[2], eps=a["epsilon"])
        elif node.op_type == "Relu":
            y = F.relu(i[0])
        elif node.op_type == "Add":
            y = i[0] + i[1]
        elif node.op_type == "MaxPool":
            y = F.max_pool2d(i[0], a["kernel_shape"], a["strides"], pad)
        elif node.op_type == "AveragePool":
            y = F.avg_pool2d(i[0], a["kernel_shape"], a["strides"], pad,
                             count_include_pad=bool(a["count_include_pad"]))
        elif node.op_type == "GlobalAveragePool":
            y = i[0].mean((2, 3), keepdim=True)
        elif node.op_type == "Flatten":
            y = i[0].flatten(a["axis"])
        elif node.op_type == "Gemm":
            y = i[0] @ (i[1].T if a.get("transB") else i[1]) + i[2]
        elif node.op_type == "Slice":
            y = i[0]
            for start, end, axis, step in zip(*(v.tolist() for v in i[1:])):
                y = y.index_select(axis, torch.arange(
                    start, min(end, y.shape[axis]), step))
        elif node.op_type == "Pad":
            n = i[0].dim()
            pads = [(int(i[1][k]), int(i[1][k + n])) for k in range(n)]
            y = F.pad(i[0], [p for pair in reversed(pads) for p in pair])
        elif node.op_type == "Identity":
            y = i[0]
        else:
            sys.exit(f"no definition of {node.op_type} here")
        values[node.output[0]] = y
    return values[graph.output[0].name]


def check_onnx(path, x, theirs):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    compare("    ONNX by definitions", evaluate(model.graph, x), theirs)
    net = cv2.dnn.readNetFromONNX(path)
    out = []
    for image in x.numpy():
        net.setInput(image[None], "image")
        out.append(net.forward().copy())
    compare("    ONNX by OpenCV", np.concatenate(out), theirs)


# ---- Verbs -------------------------------------------------------------------


def shape_of(name):
    sizes = {"vgg11": 64, "vgg11-torchvision": 64, "alexnet": 67,
             "resnet50": 64}
    return None if name.startswith("language") else \
        (3, sizes.get(name, 32), sizes.get(name, 32))


def write_inputs(path, name, seed):
    rng = np.random.default_rng(seed)
    like = shape_of(name)
    if like:
        x = rng.standard_normal((5, *like)).astype("<f4")
    else:
        x = rng.integers(0, 50, 20).astype("<i4")
    x.tofile(path)


def save(name, base):
    """As training with DataParallel leaves it."""
    torch.manual_seed(3)
    net = NETWORKS[name]({})
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
            m.weight.uniform_(0.5, 1.5)
            m.bias.normal_()
    torch.save({"epoch": 7, "state_dict": {
        "module." + k: v for k, v in net.state_dict().items()}}, base + ".pth")
    y = net.eval()(read_inputs(base + ".in", shape_of(name)))
    y.numpy().astype("<f4").tofile(base + ".theirs")


def check(name, base):
    state = read_safetensors(base + ".safetensors")
    net = NETWORKS[name](state)
    net.load_state_dict(state, strict=True)
    x = read_inputs(base + ".in", shape_of(name))
    theirs = net.eval()(x).numpy()
    compare(f"{name} in PyTorch", np.fromfile(base + ".mine", "<f4"), theirs)
    arrays = np.load(base + ".npz")
    if set(arrays.files) != set(state) or not all(
            np.array_equal(arrays[k], v.numpy()) and
            arrays[k].shape == tuple(v.shape) for k, v in state.items()):
        sys.exit(f"{base}.npz: other arrays than {base}.safetensors")
    if pathlib.Path(base + ".onnx").exists():
        check_onnx(base + ".onnx", x, theirs)


def begin(exported, imported):
    for name in exported:
        write_inputs(f"ours/{name}.in", name, 1)
    for name in imported:
        write_inputs(f"theirs/{name}.in", name, 2)
        save(name, f"theirs/{name}")


def end(exported, imported):
    for name in exported:
        check(name, f"ours/{name}")
    for name in imported:
        compare(f"{name} imported", np.fromfile(f"theirs/{name}.mine", "<f4"),
                np.fromfile(f"theirs/{name}.theirs", "<f4"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        {"begin": begin, "end": end}[sys.argv[1]](
            *(names.split() for names in sys.argv[2:]))
