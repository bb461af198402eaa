"""Checks the JSON of all commands against docs/schema.json, and that docs/json.md is made from it.

    python3 scripts/json_schema.py TOOL [--update]

Needs jsonschema and numpy. --update writes docs/json.md.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "docs/schema.json").read_text())
PAGE = ROOT / "docs/json.md"

INTRODUCTION = """\
# JSON

`bench`, `profile`, `quantize`, `autotune`, `report`, `verify`, `check`, and `inspect` print JSON with
`--json`. [`schema.json`](schema.json) describes all of it as a JSON Schema (draft 2020-12), and this
page lists its fields. Sizes are bytes, and times seconds. Numbers that JSON does not have, such as
an infinity, are null.

Every object names its form in `schema`. `version` is 1; a change that makes older readers wrong
increases it. Other fields can be added at any time.

```console
$ tfcompile bench scorer.pbtxt --batch 2 --seconds 0.01 --no-peak --json | grep '"schema"'
  "schema": "tfcompile-bench",
```
"""


def definition(schema: dict) -> dict:
    """The schema that a reference stands for, or the schema itself."""
    for choice in schema.get("anyOf", [schema]):
        if "$ref" in choice:
            return SCHEMA["$defs"][choice["$ref"].rsplit("/", 1)[1]]
    return schema


def kind(schema: dict) -> str:
    """The type in words."""
    is_null = "anyOf" in schema or "null" in schema.get("type", [])
    if "const" in schema:
        word = f"`{json.dumps(schema['const'])}`"
    elif "enum" in schema:
        word = ", ".join(f"`{value}`" for value in schema["enum"])
    else:
        types = definition(schema).get("type")
        word = types if isinstance(types, str) else types[0]
        if word == "array":
            word = "array"
    return word + (" or null" if is_null else "")


def rows(schema: dict, prefix: str) -> list[str]:
    """Rows of a table for the fields of an object, each followed by its own fields."""
    schema = definition(schema)
    if "array" in schema.get("type", []):
        return rows(schema["items"], prefix + "[]")
    lines = []
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        optional = "" if name in schema["required"] else " Optional."
        text = (field.get("description") or definition(field).get("description", "")) + optional
        lines.append(f"| `{path}` | {kind(field)} | {text} |")
        if name not in ("processor", "metadata"):
            lines += rows(field, path)
    return lines


def page() -> str:
    """The page that lists all fields."""
    text = INTRODUCTION
    for choice in SCHEMA["oneOf"]:
        form = definition(choice)
        name = choice["$ref"].rsplit("/", 1)[1]
        text += f"\n## {name}\n\n{form['description']}\n\n| field | type | content |\n|---|---|---|\n"
        fields = [row for row in rows(form, "") if not row.startswith(("| `schema`", "| `version`", "| `name`"))]
        text += "\n".join(fields) + "\n"
    return text


def scorer() -> str:
    """The graph that docs/models.md shows."""
    page = (ROOT / "docs/models.md").read_text()
    return page.split("```pbtxt scorer.pbtxt\n")[1].split("```")[0]


def commands(place: Path) -> list[list[str]]:
    """Calls of all commands, with most of their forms."""
    case = ROOT / "tests/oracle/tfcompile_tests/tfmatmulandadd"
    small = [str(case / "graph.pb"), "--config", str(case / "config.pbtxt"), "--quiet"]
    (place / "scorer.pbtxt").write_text(scorer())
    scores = ["scorer.pbtxt", "--batch", "2", "--quiet"]
    np.savez(place / "data.npz", x=np.random.default_rng(1).standard_normal((16, 2, 4), np.float32))
    (place / "bad.pbtxt").write_text('node { name: "x" op: "NoSuchOp" }\n')
    old = subprocess.run(
        [TOOL, "report", *small, "--no-time", "--json"], cwd=place, check=True, capture_output=True
    ).stdout
    (place / "old.json").write_bytes(old)
    build = [TOOL, "build", *scores, "--name", "net", "-o", "out", "--constants", "file"]
    subprocess.run(build, cwd=place, check=True, capture_output=True)
    brief = ["--seconds", "0.02"]
    return [
        ["bench", *small, *brief, "--kernels", "--threads", "1,2"],
        ["bench", *scores, *brief, "--no-peak"],
        ["profile", *small, "--steps", "3"],
        ["profile", *small, "--steps", "2", "--no-peak", "-o", "page.html"],
        ["quantize", *scores, "--data", "data.npz"],
        ["quantize", *scores, "--scheme", "int4-weights"],
        ["autotune", *scores, "--seconds", "1"],
        ["report", *small, *brief, "--accuracy"],
        ["report", *scores, "--no-time"],
        ["report", "out/net.o"],
        ["report", *small, "--no-time", "--diff", "old.json"],
        ["verify", *small],
        ["verify", *scores, "--precision", "bf16", "--random", "7"],
        ["check", *scores],
        ["check", "bad.pbtxt", "--quiet"],
        ["inspect", "out/net.o"],
        ["inspect", "out/net.constants"],
    ]


def damaged(value: dict, required: list[str]) -> list[dict]:
    """Copies of a value that no schema should accept: without a field, with another, and with another type."""
    copies = [{key: field for key, field in value.items() if key != left} for left in required]
    return [*copies, value | {"no_such_field": 1}, value | {"name": 7}]


def main() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    if "--update" in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("json_schema: docs/json.md is not made from docs/schema.json: run this script with --update")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    seen = set()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for command in commands(place):
            done = subprocess.run([TOOL, *command, "--json"], cwd=place, capture_output=True, text=True)
            if done.returncode != (1 if "bad.pbtxt" in command else 0):
                sys.exit(f"json_schema: {command}: {done.stderr}")
            value = json.loads(done.stdout)
            form = value.get("schema", "no schema").removeprefix("tfcompile-")
            if form not in SCHEMA["$defs"]:
                sys.exit(f"json_schema: {command} has no form: {form}")
            seen.add(form)
            one = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{form}", "$defs": SCHEMA["$defs"]})
            errors = [f"{error.json_path}: {error.message[:200]}" for error in one.iter_errors(value)]
            if errors or not validator.is_valid(value):
                sys.exit(f"json_schema: {command}:\n" + "\n".join(errors))
            if any(validator.is_valid(wrong) for wrong in damaged(value, SCHEMA["$defs"][form]["required"])):
                sys.exit(f"json_schema: {form}: the schema accepts damaged JSON")
        left = [entry.name for entry in place.glob("*.html")]
        if left != ["page.html"]:
            sys.exit(f"json_schema: pages were written without being asked for: {left}")
    missing = {choice["$ref"].rsplit("/", 1)[1] for choice in SCHEMA["oneOf"]} - seen
    if missing:
        sys.exit(f"json_schema: no command printed {sorted(missing)}")
    print(f"json_schema: {len(seen)} forms are as documented")


TOOL = str(Path(sys.argv[1]).resolve())
main()
