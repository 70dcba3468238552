# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of steps.py in PyTorch, written as people run them there.

Layers and parameters are those of torchvision (ResNet-50, MobileNet-V2,
DenseNet-121, ViT-B/16) and of the usual transformers; attention is
scaled_dot_product_attention. steps.py checks that the bytes of parameters are
those of the ONNX model beside it.
"""

import torch
from torch import nn
from torch.nn import functional as F


def conv(i, o, kernel, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        o = 4 * width
        self.f = nn.Sequential(conv(i, width, 1), conv(width, width, 3, stride),
                               conv(width, o, 1, act=None))
        self.skip = conv(i, o, 1, stride, act=None) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.f(x) + self.skip(x), inplace=True)


def resnet50():
    layers, i = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            layers.append(Bottleneck(i, width, stride if k == 0 else 1))
            i = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


class Inverted(nn.Module):
    def __init__(self, i, o, stride, expand):
        super().__init__()
        hidden = i * expand
        self.adds = stride == 1 and i == o
        first = [conv(i, hidden, 1, act=nn.ReLU6)] if expand != 1 else []
        self.f = nn.Sequential(*first, conv(hidden, hidden, 3, stride, hidden, nn.ReLU6),
                               conv(hidden, o, 1, act=None))

    def forward(self, x):
        return x + self.f(x) if self.adds else self.f(x)


def mobilenet_v2():
    layers, i = [conv(3, 32, 3, 2, act=nn.ReLU6)], 32
    for expand, o, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                     (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(count):
            layers.append(Inverted(i, o, stride if k == 0 else 1, expand))
            i = o
    return nn.Sequential(*layers, conv(i, 1280, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))


class Dense(nn.Module):
    def __init__(self, i, growth):
        super().__init__()
        self.f = nn.Sequential(
            nn.BatchNorm2d(i), nn.ReLU(inplace=True), nn.Conv2d(i, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, parts):
        return parts + [self.f(torch.cat(parts, 1))]


class DenseBlock(nn.Module):
    def __init__(self, i, count, growth):
        super().__init__()
        self.layers = nn.ModuleList([Dense(i + k * growth, growth) for k in range(count)])

    def forward(self, x):
        parts = [x]
        for layer in self.layers:
            parts = layer(parts)
        return torch.cat(parts, 1)


def densenet121():
    layers, i = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for block, count in enumerate((6, 12, 24, 16)):
        layers.append(DenseBlock(i, count, 32))
        i += 32 * count
        if block < 3:
            layers += [nn.BatchNorm2d(i), nn.ReLU(inplace=True),
                       nn.Conv2d(i, i // 2, 1, bias=False), nn.AvgPool2d(2)]
            i //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(i), nn.ReLU(inplace=True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


class UNet(nn.Module):
    def __init__(self, w=64, classes=21):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o),
                                 nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1),
                                 nn.ReLU(inplace=True))

        self.down1, self.down2, self.middle = block(3, w), block(w, 2 * w), block(2 * w, 4 * w)
        self.wide2, self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), block(4 * w, 2 * w)
        self.wide1, self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2), block(2 * w, w)
        self.out = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.wide2(self.middle(F.max_pool2d(b, 2)))
        y = self.wide1(self.up2(torch.cat([y, b], 1)))
        return self.out(self.up1(torch.cat([y, a], 1)))


class Block(nn.Module):
    def __init__(self, d, heads, causal, eps=1e-5):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.n1, self.n2 = nn.LayerNorm(d, eps), nn.LayerNorm(d, eps)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class Text(nn.Module):
    """GPT-2 small with a tied head, or with `classes` BERT-base and a head."""

    def __init__(self, vocabulary, length, classes=0, d=768, heads=12, layers=12):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.register_buffer("at", torch.arange(length), persistent=False)
        self.blocks = nn.Sequential(*[Block(d, heads, not classes) for _ in range(layers)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes) if classes else None

    def forward(self, x):
        x = self.words(x) + self.places(self.at)
        if self.head:
            return self.head(self.blocks(self.norm(x))[:, 0])
        return self.norm(self.blocks(x)) @ self.words.weight.t()


class ViT(nn.Module):
    def __init__(self, d=768, heads=12, layers=12):
        super().__init__()
        self.patches = nn.Conv2d(3, d, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, d))
        self.places = nn.Parameter(torch.randn(1, 197, d) * 0.02)
        self.blocks = nn.Sequential(*[Block(d, heads, False, 1e-6) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(d, 1e-6), nn.Linear(d, 1000)

    def forward(self, x):
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(len(x), -1, -1), y], 1) + self.places
        return self.head(self.norm(self.blocks(y))[:, 0])


def images(size):
    return lambda batch: torch.randn(batch, 3, size, size)


def tokens(vocabulary, length):
    return lambda batch: torch.randint(0, vocabulary, (batch, length))


# Name of the ONNX file: network, input of a batch, shape of the labels, classes.
NETWORKS = {
    "resnet50": (resnet50, images(224), (), 1000),
    "gpt2_small": (lambda: Text(50257, 256), tokens(50257, 256), (256,), 50257),
    "vit_b_16": (ViT, images(224), (), 1000),
    "bert_base": (lambda: Text(30522, 128, 2), tokens(30522, 128), (), 2),
    "unet": (UNet, images(256), (256, 256), 21),
    "mobilenet_v2": (mobilenet_v2, images(224), (), 1000),
    "densenet121": (densenet121, images(224), (), 1000),
}
