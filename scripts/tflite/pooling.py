"""Poolings: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D."""

from builder import SAME, VALID, Quant, case, feed, out
from convolutions import ACTIVATIONS

# Input, window (height, width), padding, strides, activation.
SHAPES = {
    "valid_2x2": ((1, 4, 6, 3), (2, 2), VALID, (2, 2), "none"),
    "same_3x3": ((2, 5, 5, 2), (3, 3), SAME, (1, 1), "none"),
    "same_3x3_strides_2": ((1, 6, 7, 4), (3, 3), SAME, (2, 2), "relu6"),
    "valid_3x2_strides_1_2": ((1, 5, 6, 2), (3, 2), VALID, (1, 2), "relu"),
    "global": ((2, 4, 5, 7), (4, 5), VALID, (1, 1), "none"),
    "window_larger_than_image": ((1, 3, 2, 2), (5, 5), SAME, (2, 2), "relu_n1_to_1"),
    "window_1x1": ((1, 3, 3, 2), (1, 1), VALID, (2, 2), "none"),
    "many_channels": ((1, 3, 3, 37), (2, 2), SAME, (1, 1), "none"),
    "uneven_padding": ((1, 6, 5, 1), (2, 4), SAME, (1, 1), "none"),
    "large_window": ((1, 17, 17, 2), (16, 16), VALID, (1, 1), "none"),
    "no_batch": ((0, 4, 4, 2), (2, 2), VALID, (2, 2), "none"),
}
QUANT = {"int8": Quant(0.05, -3), "uint8": Quant(0.05, 125), "int16": Quant(0.0002)}


def build():
    """Registers the cases."""
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for name, (shape, window, padding, strides, activation) in SHAPES.items():
            options = {
                "padding": padding,
                "strideH": strides[0],
                "strideW": strides[1],
                "filterHeight": window[0],
                "filterWidth": window[1],
                "fusedActivationFunction": ACTIVATIONS[activation],
            }
            case(op, f"float32_{name}", [feed("float32", shape)], [out("float32")], options)
            for dtype in QUANT if op != "L2_POOL_2D" else ():
                operands = [feed(dtype, shape, None, QUANT[dtype])]
                case(op, f"{dtype}_{name}", operands, [out(dtype, QUANT[dtype])], options)
        for activation in ("relu", "relu_n1_to_1", "relu6", "tanh"):
            options = {"padding": VALID, "strideH": 2, "strideW": 1, "filterHeight": 2, "filterWidth": 3}
            options["fusedActivationFunction"] = ACTIVATIONS[activation]
            case(
                op,
                f"float32_activation_{activation}",
                [feed("float32", (1, 4, 5, 2), lambda g, s: g.normal(size=s) * 5)],
                [out("float32")],
                options,
            )
            for dtype in QUANT if op != "L2_POOL_2D" else ():
                operands = [feed(dtype, (1, 4, 5, 2), None, QUANT[dtype])]
                case(op, f"{dtype}_activation_{activation}", operands, [out(dtype, QUANT[dtype])], options)
