#!/usr/bin/env bash
# Runs a product of matrices in Deno: with weights in the module and in a file, with one thread and
# with three, from files and from a server, in the first thread and in a worker.
#   scripts/web/deno.sh DENO        TOOL selects another build.
set -eu

deno=$1
here=$(cd "$(dirname "$0")" && pwd)
tool=$(realpath "${TOOL:-target/release/tfcompile}")
work=$(mktemp -d)
server=
trap 'rm -rf "$work"; [ -z "$server" ] || kill "$server"' EXIT

weights=$(for _ in $(seq 80); do printf '1,2,'; done)
cat >"$work/product.hlo" <<GRAPH
HloModule product
ENTRY main {
  a = f32[96,200] parameter(0)
  b = f32[200,160] parameter(1)
  c = f32[160] constant({${weights%,}})
  dot = f32[96,160] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[96,160] broadcast(c), dimensions={1}
  ROOT sum = f32[96,160] add(dot, rows)
}
GRAPH
cp "$here/deno.mjs" "$work"
cd "$work"
"$tool" build product.hlo --target=wasm32 -o embedded >/dev/null
"$tool" build product.hlo --target=wasm32-threads --constants=file -o file >/dev/null
python3 -u -m http.server 0 --bind 127.0.0.1 >server.log 2>/dev/null &
server=$!
for _ in $(seq 100); do
  grep -q ' port ' server.log && break
  sleep .1
done
port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' server.log)
host=127.0.0.1:$port

for name in embedded file; do
  case $name in
    embedded) expected="1 and 1 threads, $(stat -c %s embedded/product.wasm) bytes" ;;
    file) expected="1 and 3 threads, $(stat -c %s file/product.constants) bytes" ;;
  esac
  expected="$name: $expected, right, same bits"
  for mode in "" worker; do
    for source in . "http://$host"; do
      case $source in
        .) permissions=(--allow-read=.) ;;
        *) permissions=(--allow-import="$host" --allow-net="$host") ;;
      esac
      # shellcheck disable=SC2086 # No argument if it is empty.
      text=$(timeout 60 "$deno" run --quiet --no-prompt "${permissions[@]}" "$source/deno.mjs" "$name" $mode) || {
        echo "deno: $source $name $mode failed: $text" >&2
        exit 1
      }
      [ "$text" = "$expected" ] || {
        echo "deno: $source $name $mode: expected '$expected', got '$text'" >&2
        exit 1
      }
      echo "${source%%:*} $text${mode:+, in a worker}"
    done
  done
done
