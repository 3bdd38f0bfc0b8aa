#!/bin/sh
# Starts the PostgreSQL program with the name of this script, with the C library of Klatch's release zip. Unpack this
# folder as `postgresql` beside the zip's `bin`.
set -eu

bin=$(CDPATH='' cd "$(dirname "$0")" && pwd -P)
name=$(basename "$0")
rt=$bin/../../lib/klatch/rt
if [ ! -x "$rt/ld-linux-x86-64.so.2" ]; then
  echo "$name: there is no Klatch around this folder ($rt is missing): unpack the zip where klatch's bin folder is" >&2
  exit 69
fi
# PostgreSQL finds its other files by its argv[0], which has to be the path of this script.
exec "$rt/ld-linux-x86-64.so.2" --library-path "$rt:$bin/../lib" --argv0 "$bin/$name" "$bin/../libexec/$name" "$@"
