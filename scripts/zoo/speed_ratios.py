"""Times of a model in words."""

NAMES = {"litert": "LiteRT", "ort": "ONNX Runtime", "openvino": "OpenVINO", "xla": "XLA"}
LETTERS = {"litert": "L", "ort": "O", "openvino": "V", "xla": "X"}
JUDGES = {"litert": "LiteRT's reference kernels", "tfjs": "TensorFlow.js", "onnx": "ONNX Runtime",
          "tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def best(times):
    """The fastest peer, and its time divided by ours; None without peers."""
    others = {name: time for name, time in times.items() if name != "ours"}
    if not others or "ours" not in times:
        return None
    fastest = min(others, key=others.get)
    return fastest, others[fastest] / times["ours"]


def text(times, threads):
    """Times of a number of threads as a text."""
    found = best(times)
    micros = ", ".join(f"{name} {time / 1000:.1f}" for name, time in times.items())
    ratio = f"{found[1]:.2f} of {NAMES[found[0]]}" if found else "no peer"
    return f"{threads} thread{'s' if threads != '1' else ''}: {ratio} ({micros} us)"
