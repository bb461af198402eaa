#!/usr/bin/env bash
# Packs this tree with all required crates into target/tfcompile-source.tar.gz, which builds without
# network access. Verifies that Cargo finds all dependencies of the tool and the Python package in
# the unpacked archive.
#   scripts/offline.sh [build]      build: also builds the tool there, in the release profile
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/pack/tfcompile-source
mkdir -p "$tree"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null --files-from=- | tar -x -C "$tree"
(cd "$tree" && cargo vendor --locked >"$work/config" 2>"$work/log") || { cat "$work/log" >&2; exit 1; }
cat "$work/config" >>"$tree/.cargo/config.toml"
mkdir -p target
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/pack" -czf target/tfcompile-source.tar.gz tfcompile-source
ls -l target/tfcompile-source.tar.gz

# Disables the network if the kernel permits unprivileged network namespaces. Cargo downloads
# nothing in any case.
without_network=()
! unshare -rn true 2>/dev/null || without_network=(unshare -rn)
tar -xzf target/tfcompile-source.tar.gz -C "$work"
cd "$work/tfcompile-source"
# Uses the toolchain itself. The rustup proxies expect it next to CARGO_HOME.
PATH=$(rustc --print sysroot)/bin:$PATH
export CARGO_HOME=$work/home
"${without_network[@]}" cargo metadata --offline --locked --format-version 1 >"$work/metadata"
echo "offline: $(grep -o '"id":"registry+[^"]*"' "$work/metadata" | sort -u | wc -l) crates, all there"
# Compiles one of our crates with its dependencies. All of them would take long.
what=(check --quiet -p tf)
[ "${1:-}" != build ] || what=(build --release -p cli)
CARGO_TARGET_DIR=$work/target "${without_network[@]}" cargo "${what[@]}" --offline --locked
[ "${1:-}" != build ] || "$work/target/release/tfcompile" --version
echo "offline: 'cargo ${what[*]} --offline' passes"
