#!/usr/bin/env python3
"""Writes handwritten digits in the form of MNIST: four IDX files, and the rows of 1,000 batches.

    python3 make_data.py OUT      # Python 3 and nothing else

The digits are the 1,797 of examples/digits, 8x8 counts from 0 to 16, enlarged to 28x28 bytes: 1,297 to train on, 500 to test
with. All is integer arithmetic, so that the files are the same everywhere. They stand in for MNIST, which is not ours to give.
"""
import gzip
import os
import struct
import sys

SMALL, SIDE, LEVELS, TEST = 8, 28, 16, 500
BATCH, STEPS = 100, 1000
BITS = (1 << 64) - 1


def order(key, count):
    """Returns the numbers below `count` in random order: sorted by 24 bits of SplitMix64 seeded with the key's FNV-1a hash."""
    seed = 0xCBF29CE484222325
    for byte in key.encode():
        seed = (seed ^ byte) * 0x100000001B3 & BITS
    draws = []
    for number in range(1, count + 1):
        z = seed + number * 0x9E3779B97F4A7C15 & BITS
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & BITS
        z = (z ^ z >> 27) * 0x94D049BB133111EB & BITS
        draws.append((z ^ z >> 31) >> 40)
    return sorted(range(count), key=draws.__getitem__)


def places():
    """For each of 28 pixels the one of 8 that is left of it, and how far from it in fourteenths: bilinear interpolation."""
    for pixel in range(SIDE):
        # (pixel + 1/2) * 8/28 - 1/2, in fourteenths of a small pixel, moved inside
        at = min(max(4 * pixel - 5, 0), 14 * (SMALL - 1))
        left = min(at // 14, SMALL - 2)
        yield left, at - 14 * left


PLACES = list(places())


def enlarged(digit):
    """Enlarges 8x8 counts to 28x28 bytes with more contrast, so that strokes are as thick as MNIST's."""
    rows = [
        [digit[SMALL * top + x] * (14 - part) + digit[SMALL * (top + 1) + x] * part for x in range(SMALL)]
        for top, part in PLACES
    ]
    pixels = bytearray()
    whole = 14 * 14 * LEVELS
    for row in rows:
        for left, part in PLACES:
            value = row[left] * (14 - part) + row[left + 1] * part
            grey = (value * 255 + whole // 2) // whole
            pixels.append(min(max(2 * grey - 255, 0), 255))
    return bytes(pixels)


def write_idx(path, sizes, data):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(struct.pack(">BBBB%dI" % len(sizes), 0, 0, 8, len(sizes), *sizes) + data)


def write_rows(path, batches):
    """Writes a .npy file of 16-bit integers."""
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d, %d), }" % (len(batches), len(batches[0]))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for batch in batches:
            file.write(struct.pack("<%dH" % len(batch), *batch))


def main():
    here, out = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]
    with open(os.path.join(here, "../digits/digits.csv")) as file:
        digits = [[int(number) for number in line.split(",")] for line in file]
    digits = [digits[k] for k in order("mnist_softmax/order", len(digits))]
    os.makedirs(out, exist_ok=True)
    for name, part in ("train", digits[:-TEST]), ("t10k", digits[-TEST:]):
        images = b"".join(enlarged(digit) for digit in part)
        write_idx(os.path.join(out, name + "-images-idx3-ubyte.gz"), [len(part), SIDE, SIDE], images)
        write_idx(os.path.join(out, name + "-labels-idx1-ubyte.gz"), [len(part)], bytes(d[-1] for d in part))
    count, rows = len(digits) - TEST, []
    while len(rows) < STEPS * BATCH:
        rows += order("mnist_softmax/epoch/%d" % (len(rows) // count), count)
    write_rows(os.path.join(out, "rows.npy"), [rows[at : at + BATCH] for at in range(0, STEPS * BATCH, BATCH)])


if __name__ == "__main__":
    main()
