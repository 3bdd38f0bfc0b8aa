#!/bin/sh
# Starts the PostgreSQL program of this name on the C library that Klatch's release zip brings: unpack this folder as
# `postgresql` beside its `bin`.
set -eu

bin=$(CDPATH='' cd "$(dirname "$0")" && pwd -P)
name=$(basename "$0")
rt=$bin/../../lib/klatch/rt
if [ ! -x "$rt/ld-linux-x86-64.so.2" ]; then
  echo "$name: there is no Klatch around this folder ($rt is missing): unpack the zip where klatch's bin folder is" >&2
  exit 69
fi
# PostgreSQL finds its other files from the name that it was started by, which has to be this script's.
exec "$rt/ld-linux-x86-64.so.2" --library-path "$rt:$bin/../lib" --argv0 "$bin/$name" "$bin/../libexec/$name" "$@"
