"""Writes a tuning file for each number of a candidate, so that a build computes every kernel in that way.

    python3 scripts/candidates.py TOOL OUT MODEL [FLAG...]

File K of OUT has candidate K of each kernel, or the last one of kernels that have fewer. Prints the number
of files.
"""

import json
import subprocess
import sys
from pathlib import Path

tool, out, model, *flags = sys.argv[1:]
folder = Path(out)
folder.mkdir(parents=True, exist_ok=True)
measured = folder / "measured.tuning"
measured.unlink(missing_ok=True)
command = [tool, "autotune", model, *flags, "-o", str(measured), "--seconds", "30", "--json", "--quiet"]
kernels = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["kernels"]
# The part before the first choice names the format and the machine.
head = [line for line in measured.read_text().splitlines() if " => " not in line]
count = max((len(kernel["candidates"]) for kernel in kernels), default=0)
for number in range(count):
    lines = list(head)
    for kernel in kernels:
        candidates = kernel["candidates"]
        lines.append(f'{kernel["kernel"]} => {candidates[min(number, len(candidates) - 1)]["candidate"]}')
    (folder / f"{number}.tuning").write_text("\n".join(lines) + "\n")
print(count)
