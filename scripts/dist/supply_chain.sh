#!/usr/bin/env bash
# Checks what the tool is built from: licenses, sources, and duplicate versions of all crates, and
# advisories about them. Needs cargo-deny (cargo install cargo-deny).
#   ADVISORIES=DIR scripts/dist/supply_chain.sh
# DIR is a clone of RustSec's advisory-db, for a machine without a network. Without it, cargo-deny
# downloads the database; if it cannot, the advisories are skipped with one line, or, if CI=true,
# the check fails. DIR=none skips them.
set -eu

cd "$(dirname "$0")/../.."
if ! cargo deny --version >/dev/null 2>&1; then
  echo "supply_chain: cargo-deny is not installed: cargo install cargo-deny" >&2
  exit 1
fi
cargo deny --all-features check licenses bans sources
[ "${ADVISORIES:-}" != none ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${ADVISORIES:-}" ]; then
  # The name that cargo-deny gives the clone of its default address.
  git clone --quiet "$ADVISORIES" "$work/advisory-db-3157b0e258782691"
  touch "$work/advisory-db-3157b0e258782691/.git/FETCH_HEAD"
  sed "s#^\[advisories\]#&\ndb-path = \"$work\"#" deny.toml >"$work/deny.toml"
  cargo fetch --quiet --locked
  cargo deny --offline --all-features --config "$work/deny.toml" check advisories
  echo "supply_chain: advisories up to $(git -C "$work/advisory-db-3157b0e258782691" log -1 --format=%cs)"
elif ! cargo deny --all-features check advisories 2>"$work/errors"; then
  if ! grep -qi 'failed to fetch advisory database' "$work/errors"; then
    cat "$work/errors" >&2
    exit 1
  fi
  echo "supply_chain: no advisories: their database cannot be downloaded; name a clone with ADVISORIES=DIR"
  [ "${CI:-}" != true ] || exit 1
fi
