# Sets variables with which cargo and packers write the same bytes in every directory. Sourced at
# the root of the tree by the scripts that build what is distributed.

# Other flags need another directory for outputs.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/dist CARGO_INCREMENTAL=0
# Messages of panics contain paths of sources.
export RUSTFLAGS="--remap-path-prefix=$PWD=/tfcompile --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export CFLAGS="-ffile-prefix-map=$PWD=/tfcompile"
# Files have the time of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
