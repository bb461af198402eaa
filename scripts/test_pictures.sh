#!/usr/bin/env bash
# Tests the pages of `tfcompile hlo --format html`, `profile`, and `report` in a browser: the
# layout's own test, then the contents shown for a graph with a loop and for one with thousands of
# instructions. Stores screenshots next to the pages.
#   scripts/test_pictures.sh TOOL [OUT]
set -eu

cd "$(dirname "$0")/.."
tool=$1
out=$(mkdir -p "${2:-target/pictures}" && cd "${2:-target/pictures}" && pwd)
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "test_pictures: no browser found: install chromium (scripts/setup.sh test does on Debian)" >&2
  exit 1
fi

open() { # open PAGE FRAGMENT OPTION...: the browser on a page, its messages in $out/browser.log
  local page=$1 fragment=$2
  shift 2
  timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --no-first-run --user-data-dir="$out/profile" \
    --enable-logging=stderr --window-size=1500,950 --virtual-time-budget=10000 "$@" \
    "file://$out/$page$fragment" 2> "$out/browser.log"
  if grep -i 'CONSOLE.*\(error\|uncaught\)' "$out/browser.log"; then
    echo "test_pictures: $page reports an error" >&2
    exit 1
  fi
}
shows() { # shows PAGE FRAGMENT TEXT...: the page's document has each of the texts
  local page=$1 fragment=$2
  shift 2
  local text missing attempt
  # On a busy machine, the browser may print a document before its last frame.
  for attempt in 1 2 3; do
    missing=
    open "$page" "$fragment" --dump-dom | sed '/<noscript>/,$d' > "$out/document.html"
    for text in "$@"; do
      grep -qF -- "$text" "$out/document.html" || missing=$text
    done
    [ -n "$missing" ] || return 0
  done
  echo "test_pictures: $page$fragment does not show '$missing'; it shows:" >&2
  sed 's/<[^>]*>/ /g' "$out/document.html" | tail -n 20 | cut -c1-2000 >&2
  exit 1
}

{
  echo '<!DOCTYPE html><body></body><script>"use strict";'
  cat crates/picture/src/page/layout.js crates/picture/tests/layout.js
  echo '</script>'
} > "$out/layout.html"
shows layout.html "" "passed: 60 graphs laid out"

# A loop whose body contains a product: closed, found by search, and opened on the way to the
# product.
cat > "$out/loop.hlo" <<'HLO'
HloModule loop

condition {
  state = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i, limit), direction=LT
}

body {
  state = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[4,4] get-tuple-element(state), index=1
  square = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type="MatMul" op_name="power/<square>"}
  ROOT result = (s32[], f32[4,4]) tuple(next, square)
}

ENTRY main {
  x = f32[4,4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4,4]) tuple(zero, x)
  loop = (s32[], f32[4,4]) while(start), condition=condition, body=body
  ROOT y = f32[4,4] get-tuple-element(loop), index=1
}
HLO
"$tool" hlo "$out/loop.hlo" --stage import --format html -o "$out/loop.html"
# Three iterations of 4*4 sums of 4 products, an addition, and a comparison.
shows loop.html "#find=power" "1 found" "17 instructions, 3 computations, 390 FLOP" "5 boxes"
shows loop.html "#at=3/1.5&open=3" "square" "power/&lt;square&gt;" "dot in body" "14 boxes"
open loop.html "#at=3/1.5&open=3" --screenshot="$out/loop.png"

# Profile of the same loop: bars, the product with the work of three iterations, and charts.
"$tool" profile "$out/loop.hlo" --steps 20 --quiet -o "$out/profile.html"
shows profile.html "" "average of 20 runs" "power/&lt;square&gt;" "384" "of peak FLOP/s" "temporary block: peak" "FLOPs per byte"
open profile.html "" --screenshot="$out/profile.png"

# Thousands of instructions in one computation: two hundred steps of a cell, as in unrolled graphs.
{
  echo "HloModule unrolled"
  echo "ENTRY main {"
  echo "  x = f32[8,32] parameter(0)"
  echo "  w = f32[32,128] parameter(1)"
  previous=x
  for step in $(seq 200); do
    for gate in 0 1 2 3; do
      echo "  z.$step.$gate = f32[8,128] dot($previous, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
      echo "  a.$step.$gate = f32[8,128] tanh(z.$step.$gate)"
      echo "  b.$step.$gate = f32[8,128] logistic(z.$step.$gate)"
      echo "  c.$step.$gate = f32[8,128] multiply(a.$step.$gate, b.$step.$gate)"
      echo "  d.$step.$gate = f32[8,32] slice(c.$step.$gate), slice={[0:8], [0:32]}"
    done
    echo "  e.$step = f32[8,32] add(d.$step.0, d.$step.1)"
    echo "  f.$step = f32[8,32] add(d.$step.2, d.$step.3)"
    echo "  g.$step = f32[8,32] multiply(e.$step, f.$step)"
    echo "  h.$step = f32[8,32] add(g.$step, $previous)"
    echo "  i.$step = f32[8,32] negate(h.$step)"
    previous=i.$step
  done
  echo "  ROOT r = (f32[8,32]) tuple($previous)"
  echo "}"
} > "$out/unrolled.hlo"
"$tool" hlo "$out/unrolled.hlo" --stage import --format html -o "$out/unrolled.html"
shows unrolled.html "#find=z.150.3&at=3750" "5,003 boxes" "1 found"
open unrolled.html "" --screenshot="$out/unrolled.png"

# Reports: a loop with a hostile name, and a network of 1,200 layers, driven by keys and clicks.
sed 's|power/<square>|power/</script><script>hostile=1</script>|' "$out/loop.hlo" > "$out/hostile.hlo"
python3 - "$out/many.json" "$out/many_old.json" <<'PYTHON'
import json, sys
nodes = lambda k: [f"net/block_{k // 12}/op_{k % 12}"]
layer = lambda k: {
    "name": f"op.{k}", "kind": "convolution", "node": nodes(k)[0], "nodes": nodes(k), "group": "", "shape": "f32[8]",
    "precision": "f32", "flops": 1000 + k, "transcendentals": 0, "bytes": 64, "runs": 1, "seconds": (k % 97 + 1) * 1e-9,
    "share_of_peak": None, "code_bytes": 100, "weight_bytes": 32, "strategy": "flat loop", "reason": "",
    "candidates": ["pixels=6x4", "pixels=9x3"], "costs": [{"candidate": "pixels=6x4", "cost": 1234.0, "unit": "cycles per group"}],
    "accuracy": None, "not_compared": None,
}
sizes = dict.fromkeys(["code", "constants", "scratch", "stack", "feeds", "variables", "results"], 0)
report = {
    "schema": "tfcompile-report", "version": 1, "name": "many", "kind": "model", "target": "none", "precision": ["f32"],
    "time": None, "peak": {"flops": 1e11, "bytes": 1e10, "byte_operations": 2e11}, "sizes": {**sizes, "arena": 4096}, "layers": [layer(k) for k in range(1200)],
    "moments": [{"layer": k, "name": f"op.{k}", "bytes": 64 * (k % 50)} for k in range(1200)],
    "buffers": [{"name": "b", "node": "", "shape": "f32[8]", "offset": 0, "bytes": 64, "live": [[3, 900]]}],
    "constants": [], "results": [], "missing": [],
}
gone = {**layer(0), "name": "gone", "node": "net/gone", "nodes": ["net/gone"]}
json.dump({**report, "layers": report["layers"] + [gone]}, open(sys.argv[2], "w"))
# Five more nodes are fused into block_7/op_3, and a layer is no longer there.
report["layers"][87]["nodes"] += [f"net/block_7/bias_{k}" for k in range(5)]
json.dump(report, open(sys.argv[1], "w"))
PYTHON
"$tool" report "$out/hostile.hlo" --seconds 0.01 --no-peak --quiet -o "$out/report.html"
"$tool" report "$out/many.json" --quiet -o "$out/many.html"
"$tool" report "$out/many.json" --diff "$out/many_old.json" --quiet -o "$out/many_diff.html"
for page in report many many_diff; do
  { cat "$out/$page.html"; echo "<script>"; cat crates/report/tests/page.js; echo "</script>"; } > "$out/driven.html"
  # A window has at least 500 pixels, but a frame may be narrower.
  cat > "$out/narrow_driven.html" <<'HTML'
<!DOCTYPE html><body style="margin: 0"><iframe src="driven.html" style="width: 480px; height: 1600px; border: 0"></iframe>
<script>addEventListener("message", ({ data }) => document.body.append(data));</script>
HTML
  sed "s/driven.html/$page.html/" "$out/narrow_driven.html" > "$out/narrow.html"
  for driven in driven narrow_driven; do
    open $driven.html "" --dump-dom > "$out/document.html"
    grep -q "passed: report of [0-9]" "$out/document.html" || {
      echo "test_pictures: $page.html in $driven.html: $(grep -o 'failed: .*' "$out/document.html" | tail -n 1)" >&2
      exit 1
    }
  done
  open "$page.html" "" --window-size=1280,1600 --screenshot="$out/$page.1280.png"
  open narrow.html "" --window-size=500,1600 --screenshot="$out/$page.480.png"
done

# Graphviz, if installed, accepts the other form.
"$tool" hlo "$out/loop.hlo" --stage import --format dot -o "$out/loop.dot"
if command -v dot > /dev/null; then
  dot -Tsvg "$out/loop.dot" -o "$out/loop.svg"
fi
echo "test_pictures: layouts, a loop opened on the way to its product, 5,003 boxes, reports by keys and clicks; screenshots in $out"
