"""Recurrent ops. Their state is a variable tensor, so that each case runs twice."""

import itertools

from builder import Quant, case, const, feed, integers, out, uniform, variable

BATCH, TIME, INPUTS, CELLS, PROJECTED = 2, 3, 5, 4, 3
SCALE = {"float32": None, "int8": Quant(0.012, 0), "uint8": Quant(0.012, 128)}
GATES = ("input", "forget", "cell", "output")


def weight(dtype, shape, name):
    """A matrix of a float or hybrid op."""
    values = {"float32": uniform(-0.9, 0.9), "int8": integers(-127, 127), "uint8": integers(0, 255)}[dtype]
    return const(dtype, shape, values, SCALE[dtype], name=name)


def vector(size, name, low=-0.5, high=0.5):
    """A float vector, which hybrid ops keep in floats."""
    return const("float32", (size,), uniform(low, high), name=name)


def lstm_weights(dtype, cifg, peephole, projection, scope="lstm"):
    """The 17 weights and biases of a direction."""
    outputs = PROJECTED if projection else CELLS
    gates = [gate if gate != "input" or not cifg else None for gate in GATES]
    operands = [gate and weight(dtype, (CELLS, INPUTS), f"{scope}/input_to_{gate}_weights") for gate in gates]
    operands += [gate and weight(dtype, (CELLS, outputs), f"{scope}/recurrent_to_{gate}_weights") for gate in gates]
    for gate in (gates[0], "forget", "output"):
        shown = peephole and gate
        operands.append(
            const(
                dtype,
                (CELLS,),
                None if dtype == "float32" else integers(-99, 99),
                SCALE[dtype],
                name=f"{scope}/cell_to_{gate}_weights",
            )
            if shown
            else None
        )
    operands += [gate and vector(CELLS, f"{scope}/{gate}_gate_bias") for gate in gates]
    operands.append(weight(dtype, (outputs, CELLS), f"{scope}/projection_weights") if projection else None)
    operands.append(vector(outputs, f"{scope}/projection_bias") if projection == "bias" else None)
    return operands


def lstm_operands(dtype, sequence, time_major, cifg, peephole, projection, normalized):
    """Operands of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM of floats or with integer weights."""
    shape = ((TIME, BATCH, INPUTS) if time_major else (BATCH, TIME, INPUTS)) if sequence else (BATCH, INPUTS)
    outputs = PROJECTED if projection else CELLS
    operands = [feed("float32", shape), *lstm_weights(dtype, cifg, peephole, projection)]
    operands += [variable("float32", (BATCH, outputs)), variable("float32", (BATCH, CELLS))]
    for gate in GATES:
        shown = normalized and not (cifg and gate == "input")
        operands.append(vector(CELLS, f"lstm/{gate}_layer_norm", 0.5, 1.5) if shown else None)
    return operands


def lstm():
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM of floats and with integer weights."""
    for op in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
        sequence = op != "LSTM"
        for dtype in ("float32", "int8", "uint8"):
            for cifg, peephole, projection, normalized in itertools.product(
                (False, True), (False, True), (None, "bias"), (False, True)
            ):
                if dtype != "float32" and (
                    normalized and (cifg or peephole) or dtype == "uint8" and (cifg or peephole or normalized)
                ):
                    continue
                parts = [("cifg", cifg), ("peephole", peephole), ("projection", projection), ("layer_norm", normalized)]
                features = "_".join(name for name, used in parts if used) or "plain"
                operands = lstm_operands(dtype, sequence, False, cifg, peephole, projection, normalized)
                options = {"fusedActivationFunction": 4, "cellClip": 0.0, "projClip": 0.0}
                lstm_case(op, dtype, features, operands, options)
        for name, more in (
            ("cell_clip", {"cellClip": 0.3}),
            ("projection_clip", {"projClip": 0.1}),
            ("relu", {"fusedActivationFunction": 1}),
            ("relu6", {"fusedActivationFunction": 3}),
            ("no_activation", {"fusedActivationFunction": 0}),
        ):
            operands = lstm_operands(
                "float32", sequence, False, False, False, "weights" if "projection" in name else None, False
            )
            lstm_case(op, "float32", name, operands, {"fusedActivationFunction": 4, **more})
        operands = lstm_operands("int8", sequence, False, False, False, None, False)
        lstm_case(op, "int8", "asymmetric", operands, {"fusedActivationFunction": 4, "asymmetricQuantizeInputs": True})
        operands = lstm_operands("float32", sequence, False, False, False, None, False)[:20]
        lstm_case(op, "float32", "twenty_operands", operands, {"fusedActivationFunction": 4})
        integer_lstm(op)
    operands = lstm_operands("float32", True, True, False, True, "bias", False)
    lstm_case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "float32",
        "time_major",
        operands,
        {"fusedActivationFunction": 4, "timeMajor": True},
    )
    operands = lstm_operands("int8", True, True, False, False, None, False)
    lstm_case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "int8",
        "time_major",
        operands,
        {"fusedActivationFunction": 4, "timeMajor": True},
    )


def lstm_case(op, dtype, name, operands, options):
    """Registers a float or hybrid LSTM."""
    kind = "float32" if dtype == "float32" else f"float32 x {dtype}"
    label = "float32" if dtype == "float32" else f"float32x{dtype}"
    case(op, f"{label}_{name}", operands, [out("float32")], options, kind=kind, runs=2, summands=2)


def integer_lstm(op):
    """LSTM with int8 activations and a cell state of int16 (8x8_16)."""
    sequence = op != "LSTM"
    for cifg, peephole, projection, normalized in itertools.product((False, True), repeat=4):
        parts = [("cifg", cifg), ("peephole", peephole), ("projection", projection), ("layer_norm", normalized)]
        features = "_".join(name for name, used in parts if used) or "plain"
        outputs = PROJECTED if projection else CELLS
        shape = (BATCH, TIME, INPUTS) if sequence else (BATCH, INPUTS)
        source, state = Quant(1 / 64, -5), Quant(1 / 127, 3 if projection else -4)
        gates = [gate if gate != "input" or not cifg else None for gate in GATES]
        matrix = lambda shape, name: const("int8", shape, integers(-127, 127), Quant(0.009, 0), name=name)
        operands = [feed("int8", shape, None, source)]
        operands += [gate and matrix((CELLS, INPUTS), f"lstm/input_to_{gate}") for gate in gates]
        operands += [gate and matrix((CELLS, outputs), f"lstm/recurrent_to_{gate}") for gate in gates]
        for gate in (gates[0], "forget", "output"):
            shown = peephole and gate
            operands.append(
                const("int16", (CELLS,), integers(-32767, 32767), Quant(1 / 32768, 0), name=f"lstm/cell_to_{gate}")
                if shown
                else None
            )
        scale = 2.0**-10 / 32768 if normalized else source.scale * 0.009
        operands += [
            gate and const("int32", (CELLS,), integers(-2000, 2000), Quant(scale, 0), name=f"lstm/{gate}_bias")
            for gate in gates
        ]
        operands.append(matrix((outputs, CELLS), "lstm/projection") if projection else None)
        operands.append(const("int32", (outputs,), integers(-500, 500), Quant(0.009 / 128, 0)) if projection else None)
        operands += [variable("int8", (BATCH, outputs), state), variable("int16", (BATCH, CELLS), Quant(2.0**-11))]
        for gate in gates:
            operands.append(
                const("int16", (CELLS,), integers(9000, 32000), Quant(1 / 32768, 0)) if normalized and gate else None
            )
        temporaries = [out("int16", Quant(0.0003), ()) for _ in range(4)] + [
            out("int8", Quant(1 / 128, 2) if projection else state, ())
        ]
        options = {"fusedActivationFunction": 4}
        case(
            op,
            f"int8x8_16_{features}",
            operands,
            [out("int8", state)],
            options,
            kind="int8 quantized",
            runs=2,
            intermediates=temporaries,
        )
        if not (cifg or peephole or normalized):
            options = {"fusedActivationFunction": 4, "cellClip": 0.4, "projClip": 0.2 if projection else 0.0}
            case(
                op,
                f"int8x8_16_{features}_clip",
                operands,
                [out("int8", state)],
                options,
                kind="int8 quantized",
                runs=2,
                intermediates=temporaries,
            )


def basic_lstm():
    """LSTM with the basic kernel, of floats and of uint8."""
    depth = INPUTS + CELLS
    operands = [
        feed("float32", (BATCH, INPUTS)),
        feed("float32", (BATCH, CELLS)),
        weight("float32", (4 * CELLS, depth), "basic/kernel"),
        vector(4 * CELLS, "basic/bias"),
        feed("float32", (BATCH, CELLS)),
    ]
    results = [out("float32"), out("float32"), out("float32", fetch=False), out("float32", fetch=False)]
    options = {"fusedActivationFunction": 4, "kernelType": 1}
    case("LSTM", "float32_basic", operands, results, options, summands=2)
    unit, state = Quant(1 / 128, 128), Quant(2.0**-11, 0)
    for batch in (1, 2):
        operands = [
            feed("uint8", (batch, INPUTS), None, unit),
            feed("uint8", (batch, CELLS), None, unit),
            const("uint8", (4 * CELLS, depth), None, Quant(0.011, 131)),
            const("int32", (4 * CELLS,), integers(-3000, 3000), Quant(0.011 / 128, 0)),
            feed("int16", (batch, CELLS), integers(-9000, 9000), state),
        ]
        results = [
            out("uint8", unit),
            out("int16", state),
            out("uint8", unit, fetch=False),
            out("int16", Quant(2.0**-12), fetch=False),
        ]
        case("LSTM", f"uint8_basic_batch_{batch}", operands, results, options)


def bidirectional_lstm():
    """BIDIRECTIONAL_SEQUENCE_LSTM."""
    op = "BIDIRECTIONAL_SEQUENCE_LSTM"
    for dtype in ("float32", "int8"):
        for name, cifg, peephole, projection, merge, time_major, auxiliary in (
            ("plain", False, False, None, False, True, False),
            ("merged", False, False, None, True, True, False),
            ("batch_major", False, False, None, False, False, False),
            ("cifg_peephole", True, True, None, False, True, False),
            ("projection", False, False, "bias", False, False, False),
            ("auxiliary", False, False, None, False, True, True),
        ):
            outputs = PROJECTED if projection else CELLS
            shape = (TIME, BATCH, INPUTS) if time_major else (BATCH, TIME, INPUTS)
            operands = [feed("float32", shape)]
            for direction in ("forward", "backward"):
                operands += lstm_weights(dtype, cifg, peephole, projection, direction)
            for _ in range(2):
                operands += [variable("float32", (BATCH, outputs)), variable("float32", (BATCH, CELLS))]
            operands.append(feed("float32", shape) if auxiliary else None)
            for direction in ("forward", "backward"):
                operands += [
                    weight(dtype, (CELLS, INPUTS), f"{direction}/auxiliary_{gate}") if auxiliary else None
                    for gate in GATES
                ]
            options = {"fusedActivationFunction": 4, "mergeOutputs": merge, "timeMajor": time_major}
            kind = "float32" if dtype == "float32" else f"float32 x {dtype}"
            results = [out("float32") for _ in range(1 if merge else 2)]
            case(op, f"{kind.replace(' ', '')}_{name}", operands, results, options, kind=kind, runs=2, summands=2)


def rnn():
    """RNN and its sequences."""
    for dtype in ("float32", "int8", "uint8"):
        kind = "float32" if dtype == "float32" else f"float32 x {dtype}"
        prefix = kind.replace(" ", "")
        for activation, code in (("tanh", 4), ("relu", 1), ("relu6", 3), ("none", 0)):
            if dtype != "float32" and activation not in ("tanh", "relu"):
                continue
            weights = lambda scope="rnn": [
                weight(dtype, (CELLS, INPUTS), f"{scope}/kernel"),
                weight(dtype, (CELLS, CELLS), f"{scope}/recurrent_kernel"),
                vector(CELLS, f"{scope}/bias"),
                variable("float32", (BATCH, CELLS), name=f"{scope}/state"),
            ]
            for asymmetric in (False, True) if dtype == "int8" else (False,):
                name = f"{prefix}_{activation}{'_asymmetric' if asymmetric else ''}"
                options = {"fusedActivationFunction": code, "asymmetricQuantizeInputs": asymmetric}
                case(
                    "RNN",
                    name,
                    [feed("float32", (BATCH, INPUTS)), *weights()],
                    [out("float32")],
                    options,
                    kind=kind,
                    runs=2,
                    summands=2,
                )
                for time_major in (False, True):
                    shape = (TIME, BATCH, INPUTS) if time_major else (BATCH, TIME, INPUTS)
                    suffix = "_time_major" if time_major else ""
                    more = {**options, "timeMajor": time_major}
                    case(
                        "UNIDIRECTIONAL_SEQUENCE_RNN",
                        name + suffix,
                        [feed("float32", shape), *weights()],
                        [out("float32")],
                        more,
                        kind=kind,
                        runs=2,
                        summands=2,
                    )
                    for merge in (False, True):
                        if merge and time_major and dtype != "float32":
                            continue  # LiteRT crashes.
                        operands = [feed("float32", shape), *weights("forward"), *weights("backward"), None, None, None]
                        results = [out("float32") for _ in range(1 if merge else 2)]
                        label = f"{name}{suffix}{'_merged' if merge else ''}"
                        case(
                            "BIDIRECTIONAL_SEQUENCE_RNN",
                            label,
                            operands,
                            results,
                            {**more, "mergeOutputs": merge},
                            kind=kind,
                            runs=2,
                            summands=2,
                        )
    shape = (TIME, BATCH, INPUTS)
    matrices = lambda scope: [
        weight("float32", (CELLS, INPUTS), f"{scope}/kernel"),
        weight("float32", (CELLS, CELLS), f"{scope}/recurrent_kernel"),
        vector(CELLS, f"{scope}/bias"),
        variable("float32", (BATCH, CELLS)),
    ]
    operands = [
        feed("float32", shape),
        *matrices("forward"),
        *matrices("backward"),
        feed("float32", shape),
        weight("float32", (CELLS, INPUTS), "a"),
        weight("float32", (CELLS, INPUTS), "b"),
    ]
    options = {"fusedActivationFunction": 4, "timeMajor": True}
    case(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "float32_auxiliary",
        operands,
        [out("float32"), out("float32")],
        options,
        kind="float32",
        runs=2,
        summands=2,
    )


def svdf():
    """SVDF of floats, with integer weights, and of integers."""
    memory, units = 6, 4
    for rank in (1, 2):
        filters = units * rank
        for activation, code in (("none", 0), ("relu", 1)):
            for dtype in ("float32", "int8", "uint8"):
                for bias in (True, False):
                    for asymmetric in (False, True) if dtype == "int8" else (False,):
                        operands = [
                            feed("float32", (BATCH, INPUTS)),
                            weight(dtype, (filters, INPUTS), "svdf/feature"),
                            weight(dtype, (filters, memory), "svdf/time"),
                        ]
                        operands += [
                            vector(units, "svdf/bias") if bias else None,
                            variable("float32", (BATCH, memory * filters)),
                        ]
                        kind = "float32" if dtype == "float32" else f"float32 x {dtype}"
                        suffix = ("" if bias else "_no_bias") + ("_asymmetric" if asymmetric else "")
                        name = f"{kind.replace(' ', '')}_rank_{rank}_{activation}{suffix}"
                        options = {
                            "rank": rank,
                            "fusedActivationFunction": code,
                            "asymmetricQuantizeInputs": asymmetric,
                        }
                        case("SVDF", name, operands, [out("float32")], options, kind=kind, runs=2, summands=3)
            for time_type in ("int16", "int8"):
                operands = [
                    feed("int8", (BATCH, INPUTS), None, Quant(1 / 64, -3)),
                    const("int8", (filters, INPUTS), integers(-127, 127), Quant(0.01, 0)),
                    const(
                        time_type,
                        (filters, memory),
                        integers(-127, 127) if time_type == "int8" else integers(-32767, 32767),
                        Quant(0.01 if time_type == "int8" else 2.0**-15, 0),
                    ),
                    const("int32", (units,), integers(-3000, 3000), Quant(2.0**-24, 0)),
                    variable(time_type, (BATCH, memory * filters), Quant(2.0**-9 if time_type == "int16" else 0.02, 0)),
                ]
                options = {"rank": rank, "fusedActivationFunction": code}
                case(
                    "SVDF",
                    f"int8_state_{time_type}_rank_{rank}_{activation}",
                    operands,
                    [out("int8", Quant(0.04, 7))],
                    options,
                    kind="int8 quantized",
                    runs=2,
                )


def build():
    """Registers the cases."""
    lstm()
    basic_lstm()
    bidirectional_lstm()
    rnn()
    svdf()
