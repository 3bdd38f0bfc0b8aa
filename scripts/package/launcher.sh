#!/bin/sh
# Starts Klatch out of the folder that the release zip was unpacked to, on the C library that it brings. Works through
# links, from PATH and from any folder.
set -eu

self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
root=$(CDPATH='' cd "$(dirname "$self")/.." && pwd -P)
rt=$root/lib/klatch/rt

if [ ! -x "$rt/ld-linux-x86-64.so.2" ]; then
  echo "klatch: $rt is incomplete: unpack the release zip again" >&2
  exit 69
fi
KLATCH_LAUNCHER=$root/bin/klatch
# The program looks for a home folder at once, and a user out of no list has none.
HOME=${HOME:-/}
# A young generation of 32 MiB, twice V8's own: 7 % of the rate of deliveries.
NODE_OPTIONS="--max-semi-space-size=32 ${NODE_OPTIONS:-}"
export KLATCH_LAUNCHER HOME NODE_OPTIONS
exec "$rt/ld-linux-x86-64.so.2" --library-path "$rt" --argv0 "$KLATCH_LAUNCHER" "$root/lib/klatch/klatch" "$@"
