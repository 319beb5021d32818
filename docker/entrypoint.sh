#!/bin/sh
# No argument: build the bundle's engines if they do not fit, then serve the health state.
# A deploychain command (doctor, device build, ...) runs it; a path or a shell runs as given.
set -eu
if [ "$#" -eq 0 ]; then
  set -- device serve --host 0.0.0.0 "${DEPLOYCHAIN_BUNDLE:-/models/bundle.tar}"
fi
case "$1" in
  sh | bash | /*) exec "$@" ;;
  *) exec deploychain "$@" ;;
esac
