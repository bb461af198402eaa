"""Random numbers of given seeds. Each case runs twice, because the state advances."""

import numpy as np

from builder import case, feed, given, given_feed, out


def build():
    """Registers the cases."""
    for op in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"):
        for name, shape in (
            ("rank_1", [5]),
            ("rank_2", [3, 7]),
            ("rank_4", [1, 2, 3, 2]),
            ("scalar", []),
            ("one", [1]),
            ("long", [131]),
        ):
            for seed, second in ((1, 2), (1234, 5678), (0, 9), (9, 0)):
                if name not in ("rank_2", "long") and seed != 1234:
                    continue
                options = {"seed": seed, "seed2": second}
                case(
                    op,
                    f"float32_{name}_seed_{seed}_{second}",
                    [given(shape)],
                    [out("float32")],
                    options,
                    kind="float32",
                    runs=2,
                )
        operands = [given_feed([2, 3])]
        case(
            op,
            "float32_fed_shape",
            operands,
            [out("float32")],
            {"seed": 5, "seed2": 6},
            kind="float32",
            runs=2,
            dynamic=[0],
        )
    for result in ("int32", "int64"):
        for name, shape, count in (("one_row", (1, 4), 9), ("rows", (3, 5), 6), ("one_class", (2, 1), 3)):
            for seed, second in ((7, 8), (0, 3)):
                operands = [feed("float32", shape), given(count)]
                label = f"float32_to_{result}_{name}_seed_{seed}_{second}"
                case(
                    "MULTINOMIAL",
                    label,
                    operands,
                    [out(result)],
                    {"seed": seed, "seed2": second},
                    kind="float32",
                    runs=2,
                )
    operands = [given_feed([[-1e9, 0.0, -1e9], [0.0, -1e9, -1e9]], "float32"), given(5)]
    case("MULTINOMIAL", "float32_certain", operands, [out("int32")], {"seed": 7, "seed2": 8}, kind="float32", runs=2)
    for name, algorithm, states in (
        ("philox", 1, ([1, 2], [1, 2, 3])),
        ("threefry", 2, ([1, 2],)),
        ("default", 0, ([1, 2],)),
    ):
        for state in states:
            for dtype in ("int32", "int64", "uint32", "uint64"):
                for size, shape in (("rank_1", (5,)), ("rank_3", (2, 3, 3)), ("scalar_like", (1,))):
                    if size != "rank_3" and dtype not in ("uint32", "int64"):
                        continue
                    operands = [given_feed(np.array(state, np.uint64), "uint64")]
                    label = f"{dtype}_{name}_{len(state)}_words_{size}"
                    results = [out("uint64", shape=(len(state),)), out(dtype, shape=shape)]
                    case("STABLEHLO_RNG_BIT_GENERATOR", label, operands, results, {"algorithm": algorithm}, kind=dtype)
    operands = [given_feed(np.array([2**64 - 1, 2**63 + 5], np.uint64), "uint64")]
    case(
        "STABLEHLO_RNG_BIT_GENERATOR",
        "uint32_threefry_carry",
        operands,
        [out("uint64", shape=(2,)), out("uint32", shape=(9,))],
        {"algorithm": 2},
        kind="uint32",
    )
    operands = [given_feed(np.array([3, 2**64 - 1], np.uint64), "uint64")]
    case(
        "STABLEHLO_RNG_BIT_GENERATOR",
        "uint32_philox_carry",
        operands,
        [out("uint64", shape=(2,)), out("uint32", shape=(9,))],
        {"algorithm": 1},
        kind="uint32",
    )
