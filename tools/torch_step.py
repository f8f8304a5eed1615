#!/usr/bin/python3
"""Time one training step of PyTorch, to be held against `sprat bench`.

    tools/torch_step.py NETWORK [--threads N] [--steps K] [--batch B]
                                [--layout best|contiguous|channels_last]

NETWORK is one of configs/cifar10/: resnet20 and resnet110 (shortcut A),
resnet18 (shortcut B, batch norm behind the first convolution), vgg19 (batch
norm, three fully connected layers); or of configs/ptb/: lstm200, lstm650 and
lstm1500 (20 columns of 35 tokens, whatever --batch is; there is one layout). A
step is what Sprat's is: forward, loss, backward and momentum SGD with decay on
one batch that stays where it is; the first two steps are not measured.

Prints one JSON object: network params step_ms (median) step_ms_min step_ms_max
items_per_s peak_rss_mib threads layout torch. With --layout best, the default,
each memory layout is measured in a process of its own and the faster one is
printed. Status 2: there is no PyTorch.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

CLASSES, SIZE, UNMEASURED = 10, 32, 2
LAYOUTS = ("contiguous", "channels_last")
VGG19 = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
WORDS, COLUMNS, TOKENS = 10000, 20, 35
LSTM = {"lstm200": (200, 0.0), "lstm650": (650, 0.5), "lstm1500": (1500, 0.65)}
NETWORKS = ("resnet20", "resnet110", "resnet18", "vgg19") + tuple(LSTM)


def networks(torch):
    """The builders of all networks, by name."""
    nn, F = torch.nn, torch.nn.functional

    def conv_norm(cin, cout, kernel=3, stride=1):
        return nn.Sequential(
            nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(cout))

    class Shift(nn.Module):
        """Shortcut A: every stride-th pixel, zeros for new channels."""

        def __init__(self, cin, cout, stride):
            super().__init__()
            self.stride, self.extra = stride, cout - cin

        def forward(self, x):
            x = x[:, :, ::self.stride, ::self.stride]
            return F.pad(x, (0, 0, 0, 0, 0, self.extra))

    class Block(nn.Module):
        def __init__(self, cin, cout, stride, option_a):
            super().__init__()
            self.first = conv_norm(cin, cout, 3, stride)
            self.second = conv_norm(cout, cout)
            if stride == 1 and cin == cout:
                self.shortcut = nn.Identity()
            elif option_a:
                self.shortcut = Shift(cin, cout, stride)
            else:
                self.shortcut = conv_norm(cin, cout, 1, stride)

        def forward(self, x):
            y = self.second(F.relu(self.first(x), inplace=True))
            return F.relu(y + self.shortcut(x), inplace=True)

    def resnet(widths, blocks, option_a):
        layers = [conv_norm(3, widths[0]), nn.ReLU(inplace=True)]
        cin = widths[0]
        for stage, cout in enumerate(widths):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(Block(cin, cout, stride, option_a))
                cin = cout
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(cin, CLASSES))

    def vgg19():
        layers, cin = [], 3
        for cout, convs in VGG19:
            for _ in range(convs):
                layers += [conv_norm(cin, cout), nn.ReLU(inplace=True)]
                cin = cout
            layers.append(nn.MaxPool2d(2))
        layers.append(nn.Flatten())
        for _ in range(2):
            layers += [nn.Dropout(), nn.Linear(512, 512),
                       nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Linear(512, CLASSES))

    class LanguageModel(nn.Module):
        def __init__(self, hidden, dropout):
            super().__init__()
            self.encoder = nn.Embedding(WORDS, hidden)
            self.dropout = nn.Dropout(dropout)
            self.rnn = nn.LSTM(hidden, hidden, 2, dropout=dropout)
            self.decoder = nn.Linear(hidden, WORDS)

        def forward(self, x):
            y, _ = self.rnn(self.dropout(self.encoder(x)))
            return self.decoder(self.dropout(y)).flatten(0, 1)

    def lstm(name):
        return lambda: LanguageModel(*LSTM[name])

    return {
        **{name: lstm(name) for name in LSTM},
        "resnet20": lambda: resnet((16, 32, 64), 3, True),
        "resnet110": lambda: resnet((16, 32, 64), 18, True),
        "resnet18": lambda: resnet((64, 128, 256, 512), 2, False),
        "vgg19": vgg19,
    }


def batch(torch, a):
    """Inputs and labels."""
    if a.network in LSTM:
        return (torch.randint(0, WORDS, (TOKENS, COLUMNS)),
                torch.randint(0, WORDS, (TOKENS * COLUMNS,)))
    x = torch.randn(a.batch, 3, SIZE, SIZE)
    if a.layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    return x, torch.arange(a.batch) % CLASSES


def measure(a):
    """Time the steps of one layout in this process."""
    try:
        import torch
    except ImportError as error:
        print(f"torch_step: {sys.executable} has no PyTorch ({error}): use an "
              "interpreter that has it; apt-get install python3-torch gives "
              "it to /usr/bin/python3", file=sys.stderr)
        sys.exit(2)
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    net = networks(torch)[a.network]()
    x, y = batch(torch, a)
    if a.layout == "channels_last":
        net = net.to(memory_format=torch.channels_last)
    rule = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9,
                           weight_decay=1e-4)
    times = []
    for _ in range(UNMEASURED + a.steps):
        start = time.perf_counter()
        rule.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), y).backward()
        rule.step()
        times.append(1e3 * (time.perf_counter() - start))
    times = times[UNMEASURED:]
    median = statistics.median(times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "network": a.network,
        "params": sum(p.numel() for p in net.parameters()),
        "step_ms": round(median, 3),
        "step_ms_min": round(min(times), 3),
        "step_ms_max": round(max(times), 3),
        "items_per_s": round(1e3 * len(y) / median, 1),
        "peak_rss_mib": round(peak, 1),
        "threads": a.threads,
        "layout": a.layout,
        "torch": torch.__version__,
    }


def best(a):
    """The faster layout, each in a process whose peak memory is its own."""
    results = []
    for layout in LAYOUTS[:1] if a.network in LSTM else LAYOUTS:
        command = [sys.executable, __file__, a.network, "--layout", layout,
                   "--threads", str(a.threads), "--steps", str(a.steps),
                   "--batch", str(a.batch)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ,
                                      OMP_NUM_THREADS=str(a.threads)))
        if run.returncode:
            sys.exit(run.returncode)
        results.append(json.loads(run.stdout))
    return min(results, key=lambda r: r["step_ms"])


def whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--threads", type=whole,
                        default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=whole, default=5)
    parser.add_argument("--batch", type=whole, default=128)
    parser.add_argument("--layout", default="best",
                        choices=("best",) + LAYOUTS)
    a = parser.parse_args()
    print(json.dumps(best(a) if a.layout == "best" else measure(a)))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
