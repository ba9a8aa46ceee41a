#!/bin/sh
# Chromium and axe-core for the tests of pages: from Debian's packages and from npm. Called by the Makefile with the
# folder of the virtual environment. Never fails: where something cannot be had, it says so, and the tests that need it
# are skipped. The stamp is made only when all is there, so that the next run tries again.
venv=$1
place=$venv/browser
log=$(mktemp)
missing=""

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >"$log" 2>&1
  fi
  command -v chromium >/dev/null || missing="Chromium (apt-get install chromium)"
fi

if [ ! -f "$place/node_modules/axe-core/axe.min.js" ]; then
  mkdir -p "$place"
  npm install --no-audit --no-fund --prefix "$place" axe-core@4 >>"$log" 2>&1
  [ -f "$place/node_modules/axe-core/axe.min.js" ] || missing="${missing:+$missing and }axe-core (npm install axe-core)"
fi

if [ -n "$missing" ]; then
  echo "!!! NOT INSTALLED: $missing. Tests of pages in a browser are SKIPPED. What was tried:" >&2
  tail -n 5 "$log" >&2
else
  touch "$venv/.browser"
fi
rm -f "$log"
exit 0
