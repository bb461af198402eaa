"""Ops on images: resizing, blocks of space, and RFFT2D."""

from builder import case, feed, given, given_feed, out
from shapes import ALL, typed


def resizes():
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""
    sizes = {
        "up_2": ((1, 2, 3, 2), [4, 6]),
        "up_uneven": ((2, 3, 2, 1), [5, 7]),
        "down": ((1, 6, 5, 3), [3, 2]),
        "same": ((1, 3, 3, 2), [3, 3]),
        "to_one": ((1, 4, 5, 2), [1, 1]),
        "from_one": ((1, 1, 1, 2), [3, 4]),
        "mixed": ((1, 2, 6, 1), [5, 3]),
    }
    for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        for name, (shape, size) in sizes.items():
            for corners, centers in ((False, False), (True, False), (False, True)):
                suffix = ("_align_corners" if corners else "") + ("_half_pixel_centers" if centers else "")
                options = {"alignCorners": corners, "halfPixelCenters": centers}
                types = (
                    ("float32", "int8", "uint8", "int16")
                    if name in ("up_2", "up_uneven", "down", "mixed")
                    else ("float32", "int8")
                )
                typed(op, name + suffix, types, lambda d, q, s=shape, z=size: [feed(d, s, None, q), given(z)], options)
        options = {"alignCorners": True, "halfPixelCenters": True}
        typed(op, "both_options", ("float32",), lambda d, q: [feed(d, (1, 2, 3, 1)), given([4, 4])], options)
        typed(
            op, "plain", ("float16", "bfloat16", "int32", "int64"), lambda d, q: [feed(d, (1, 2, 3, 1)), given([4, 4])]
        )
        typed(op, "fed_size", ("float32",), lambda d, q: [feed(d, (1, 2, 3, 1)), given_feed([4, 4])], dynamic=[0])


def blocks():
    """SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND."""
    for name, shape, size in (("block_2", (1, 4, 4, 3), 2), ("block_3", (2, 3, 6, 1), 3), ("block_1", (1, 2, 2, 2), 1)):
        types = ALL if name == "block_2" else ("float32", "int8")
        typed("SPACE_TO_DEPTH", name, types, lambda d, q, s=shape: [feed(d, s, None, q)], {"blockSize": size})
    for name, shape, size in (("block_2", (1, 2, 2, 8), 2), ("block_3", (2, 1, 2, 9), 3), ("block_1", (1, 2, 2, 2), 1)):
        types = ALL if name == "block_2" else ("float32", "int8")
        typed("DEPTH_TO_SPACE", name, types, lambda d, q, s=shape: [feed(d, s, None, q)], {"blockSize": size})
    for name, shape, block, amounts in (
        ("rank_4", (1, 4, 4, 2), [2, 2], [[0, 0], [0, 0]]),
        ("paddings", (2, 3, 4, 1), [2, 3], [[1, 0], [0, 2]]),
        ("rank_3", (1, 4, 3), [2], [[1, 1]]),
        ("batches", (2, 2, 4, 1), [1, 2], [[0, 0], [0, 0]]),
    ):
        types = ALL if name == "rank_4" else ("float32", "int8", "uint8")
        typed(
            "SPACE_TO_BATCH_ND",
            name,
            types,
            lambda d, q, s=shape, b=block, a=amounts: [feed(d, s, None, q), given(b), given(a)],
        )
    for name, shape, block, crops in (
        ("rank_4", (4, 2, 2, 2), [2, 2], [[0, 0], [0, 0]]),
        ("crops", (6, 2, 2, 1), [2, 3], [[1, 0], [0, 2]]),
        ("rank_3", (2, 3, 3), [2], [[1, 1]]),
        ("batches", (4, 2, 2, 1), [1, 2], [[0, 0], [0, 0]]),
    ):
        types = ALL if name == "rank_4" else ("float32", "int8", "uint8")
        typed(
            "BATCH_TO_SPACE_ND",
            name,
            types,
            lambda d, q, s=shape, b=block, c=crops: [feed(d, s, None, q), given(b), given(c)],
        )
    for op, shape in (("SPACE_TO_BATCH_ND", (1, 4, 4, 1)), ("BATCH_TO_SPACE_ND", (4, 2, 2, 1))):
        typed(
            op,
            "fed",
            ("float32",),
            lambda d, q, s=shape: [feed(d, s), given_feed([2, 2]), given_feed([[0, 0], [0, 0]])],
            dynamic=[0],
        )


def transforms():
    """RFFT2D."""
    for name, shape, lengths in (
        ("4x4", (4, 4), [4, 4]),
        ("batch", (2, 4, 8), [4, 8]),
        ("padded", (3, 6), [4, 8]),
        ("cropped", (5, 9), [4, 8]),
        ("1x8", (1, 8), [1, 8]),
        ("2x2", (2, 2), [2, 2]),
    ):
        summands = lengths[0] * lengths[1]
        operands = [feed("float32", shape), given(lengths)]
        case("RFFT2D", f"float32_{name}", operands, [out("complex64")], kind="float32", atol=1e-6 * summands, rtol=1e-5)


def build():
    """Registers the cases."""
    resizes()
    blocks()
    transforms()
