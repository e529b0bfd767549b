#!/usr/bin/env python3
"""The steps of benches/training.rs in PyTorch, eager: the same sizes, optimisers and columns.

    target/peers/venv/bin/python benches/training.py [step…]
"""

import sys
import time

import torch
import torch.nn.functional as F


def weight(*shape, scale):
    return (torch.randn(*shape) * scale).requires_grad_()


def constant(extent, value):
    return torch.full((extent,), value).requires_grad_()


def steps(weights, is_adam, loss):
    optimiser = torch.optim.Adam(weights, 1e-3) if is_adam else torch.optim.SGD(weights, 1e-2)

    def step():
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
        return value.item()

    return step


def mlp():
    sizes = [784, 512, 256, 10]
    w = [part for a, b in zip(sizes, sizes[1:]) for part in (weight(a, b, scale=0.05), constant(b, 0.0))]
    x, y = torch.randn(256, 784), torch.randint(0, 10, (256,))

    def loss():
        hidden = (x @ w[0] + w[1]).relu()
        hidden = (hidden @ w[2] + w[3]).relu()
        return F.cross_entropy(hidden @ w[4] + w[5], y)

    return steps(w, True, loss)


def convnet():
    w = [weight(32, 3, 3, 3, scale=0.1), constant(32, 0.0), weight(64, 32, 3, 3, scale=0.05), constant(64, 0.0),
         weight(4096, 10, scale=0.01), constant(10, 0.0)]
    images, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))

    def loss():
        x = F.max_pool2d(F.conv2d(images, w[0], w[1], padding=1).relu(), 2)
        x = F.max_pool2d(F.conv2d(x, w[2], w[3], padding=1).relu(), 2)
        return F.cross_entropy(x.flatten(1) @ w[4] + w[5], y)

    return steps(w, False, loss)


def batch_norm():
    w = [weight(64, 64, 3, 3, scale=0.05), constant(64, 1.0), constant(64, 0.0)]
    x = torch.randn(32, 64, 28, 28)

    def loss():
        y = F.batch_norm(F.conv2d(x, w[0], padding=1), None, None, w[1], w[2], True)
        return (y.relu() + x).square().mean()

    return steps(w, False, loss)


def transformer():
    batch, length, width = 8, 128, 256
    w = [weight(1000, width, scale=0.02), weight(length, width, scale=0.02)]
    for _ in range(2):
        w += [constant(width, 1.0), constant(width, 0.0), weight(width, 3 * width, scale=0.02),
              weight(width, width, scale=0.02), constant(width, 1.0), constant(width, 0.0),
              weight(width, 4 * width, scale=0.02), weight(4 * width, width, scale=0.02)]
    read, following = (torch.randint(0, 1000, (batch, length)) for _ in range(2))

    def loss():
        x = F.embedding(read, w[0]) + w[1]
        for n in range(2, len(w), 8):
            a, b, qkv, out, c, d, up, down = w[n:n + 8]
            heads = F.layer_norm(x, (width,), a, b) @ qkv
            q, k, v = heads.reshape(batch, length, 3, 8, width // 8).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(batch, length, width) @ out
            x = x + F.gelu(F.layer_norm(x, (width,), c, d) @ up) @ down
        return F.cross_entropy((x @ w[0].t()).flatten(0, 1), following.flatten())

    return steps(w, True, loss)


def lstm():
    cells = 128
    w = [weight(cells, 4 * cells, scale=0.05), weight(cells, 4 * cells, scale=0.05), constant(4 * cells, 0.0)]
    x, y = torch.randn(50, 32, cells), torch.randn(32, cells)

    def loss():
        given = x @ w[0] + w[2]
        h = c = torch.zeros_like(y)
        for time_step in range(50):
            i, f, g, o = (given[time_step] + h @ w[1]).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return (h - y).square().mean()

    return steps(w, False, loss)


def main():
    programs = [mlp, convnet, batch_norm, transformer, lstm]
    print(f"{'step':12} {'first':>9} {'least':>9} {'median':>9}  ms")
    for program in programs:
        if sys.argv[1:] and program.__name__ not in sys.argv[1:]:
            continue
        step = program()

        def timed():
            start = time.perf_counter()
            step()
            return (time.perf_counter() - start) * 1e3

        first = timed()
        timed()
        further = sorted(timed() for _ in range(15))
        print(f"{program.__name__:12} {first:9.1f} {further[0]:9.2f} {further[7]:9.2f}", flush=True)


main()
