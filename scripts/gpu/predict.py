#!/usr/bin/env python3
"""Predicts the time of packed models on a GPU, before anybody measures it.

    predict.py PACK/models --ptxas FILE --out FILE

For each launch of a model it takes the grid and the estimates of work from NAME.json, registers and
workgroup memory from `ptxas -v` on the PTX in NAME.device, and states occupancy, the time that the
bytes and the operations need at the peaks of the GPU below, and which of them limits the kernel.
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import tempfile

# An H200: data sheet, except for the measured bandwidth of a copy.
GPU = {
    "name": "H200 (predicted)",
    "architecture": "sm_90a",
    "processors": 132,
    "threads": 2048,
    "groups": 32,
    "registers": 65536,
    "workgroup_bytes": 227 << 10,
    "copy_bytes_per_s": 4.3e12,
    "f32_flops": 67e12,
    # Without sparsity, and the share of it that `mma.sync` reaches at best.
    "matrix_flops": 0.6 * 990e12,
    "launch_s": 2.5e-6,
}


def images(path):
    """Yields kind, architecture, and bytes of the images in a device program."""
    data = path.read_bytes()
    count = struct.unpack_from("<I", data, 80)[0]
    (at,) = struct.unpack_from("<Q", data, 112)
    for k in range(count):
        kind, architecture, place, size = struct.unpack_from("<IIQQ", data, at + 24 * k)
        yield kind, architecture, data[place : place + size]


def registers(path, ptxas):
    """Returns registers, workgroup bytes, and spilled bytes of each kernel for the newest image."""
    kind, architecture, ptx = max(images(path), key=lambda image: image[1])
    assert kind == 1, "not PTX"
    name = f"sm_{architecture % 1000}" + ("a" if architecture >= 1000 else "")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.ptx"
        source.write_bytes(ptx.rstrip(b"\0"))
        command = [ptxas, "-v", f"-arch={name}", "-o", f"{folder}/kernels.cubin", str(source)]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    # Kernels with matrix instructions.
    bodies = re.split(r"\.visible \.entry ", ptx.decode("utf-8", "replace"))[1:]
    matrix = {body.split("(", 1)[0].strip() for body in bodies if "mma.sync" in body}
    kernels, current = {}, None
    for text in report.splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", text):
            current = kernels.setdefault(match[1], {"registers": 0, "workgroup": 0, "spill": 0, "matrix": match[1] in matrix})
        for key, pattern in [
            ("registers", r"Used (\d+) registers"),
            ("workgroup", r"(\d+) bytes smem"),
            ("spill", r"(\d+) bytes spill stores"),
        ]:
            if current is not None and (match := re.search(pattern, text)):
                current[key] = int(match[1])
    return kernels


def occupancy(threads, used):
    """Returns the share of a multiprocessor's threads that can be resident."""
    warps = -(-threads // 32)
    per_warp = -(-max(used["registers"], 1) * 32 // 256) * 256
    by_registers = GPU["registers"] // (per_warp * warps)
    by_memory = GPU["workgroup_bytes"] // (used["workgroup"] + 1024)
    groups = min(GPU["threads"] // (warps * 32), by_registers, by_memory, GPU["groups"])
    return groups * warps * 32 / GPU["threads"]


def predict(folder, name, ptxas):
    facts = json.loads((folder / f"{name}.json").read_text())
    used = registers(folder / f"{name}.device", ptxas)
    kernels, seconds = [], GPU["launch_s"]
    for launch in facts["kernels"]:
        kernel = used[launch["kernel"]]
        share = min(launch["groups"] * launch["threads"] / (GPU["processors"] * 128), 1.0)
        memory = launch["bytes"] / GPU["copy_bytes_per_s"]
        peak = GPU["matrix_flops"] if kernel["matrix"] else GPU["f32_flops"]
        compute = 2 * launch["operations"] / peak
        limit = "memory" if memory >= compute else "arithmetic"
        time = max(memory, compute) / max(share, 1e-9)
        seconds += launch["times"] * time
        kernels.append(
            {
                "kernel": launch["kernel"],
                "grid": [launch["groups"], launch["threads"]],
                "registers": kernel["registers"],
                "workgroup_bytes": kernel["workgroup"],
                "spill_bytes": kernel["spill"],
                "occupancy": round(occupancy(launch["threads"], kernel), 3),
                "bytes": launch["bytes"],
                "operations": launch["operations"],
                "limit": limit if share >= 1.0 else "parallelism",
                "seconds": float(f"{time:.3g}"),
            }
        )
    return {"seconds": float(f"{seconds:.3g}"), "kernels": kernels}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    names = sorted(path.stem for path in arguments.folder.glob("*.device"))
    models = {name: predict(arguments.folder, name, arguments.ptxas) for name in names}
    arguments.out.write_text(json.dumps({"gpu": GPU, "models": models}, indent=1) + "\n")


if __name__ == "__main__":
    main()
