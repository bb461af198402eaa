#!/usr/bin/env bash
# Checks the worked examples of docs/contributing. The ```diff fences of a page form one patch, and
# the lines of its ```sh fences that begin with `cargo` run the tests that the patch adds.
#   scripts/test_recipes.sh            checks that each patch applies to this tree
#   scripts/test_recipes.sh --build    also checks that a copy with all patches passes their tests
#   scripts/test_recipes.sh --copy DIR only creates that copy, for work on an example
set -eu

cd "$(dirname "$0")/.."
work=$PWD/target/recipes
# Keeps previous builds.
rm -rf "$work"/*.patch "$work/tree"
mkdir -p "$work"

# Prints the contents of a page's fences in one language, including files that they include.
fences() {
  awk -v open="^\`\`\`$1\$" '$0 ~ open { inside = 1; next } /^```$/ { inside = 0 } inside' "$2" |
    while IFS= read -r line; do
      case $line in
        '{{#include '*'}}') line=${line#* } && cat "$(dirname "$2")/${line%\}\}}" ;;
        *) printf '%s\n' "$line" ;;
      esac
    done
}

failed=
for page in docs/contributing/*.md; do
  patch=$work/$(basename "$page" .md).patch
  fences diff "$page" >"$patch"
  if [ ! -s "$patch" ]; then
    rm "$patch"
  elif ! git apply --check "$patch"; then
    echo "$page: its diffs do not apply; run scripts/mend_recipes.py" >&2
    failed=yes
  fi
done
[ -z "$failed" ] || exit 1
set -- "${1:-}" "${2:-$work/tree}"
if [ -n "$1" ]; then
  tree=$2
  mkdir -p "$tree"
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference --preserve=timestamps -t "$tree"
  # A separate repository, because git would otherwise apply the patches to this one.
  git -C "$tree" init --quiet
  for patch in "$work"/*.patch; do
    git -C "$tree" apply "$patch" || {
      echo "$(basename "$patch" .patch): its diffs do not apply after those of the pages before" >&2
      exit 1
    }
  done
fi
if [ "$1" = --build ]; then
  export CARGO_TARGET_DIR=$work/build
  for page in docs/contributing/*.md; do
    [ -s "$work/$(basename "$page" .md).patch" ] || continue
    echo "== $page"
    fences sh "$page" | grep '^cargo ' >"$work/commands"
    (cd "$tree" && bash -eu -o pipefail "$work/commands")
  done
fi
echo "recipes: the diffs of $(ls "$work"/*.patch | wc -l) pages apply"
