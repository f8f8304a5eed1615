#!/usr/bin/env bash
# Reports and comparisons of runs that the program makes; the page in a real
# browser, if there is one.
#   test_report.sh SPRAT PICTURE      77: all but the browser's part was done
set -uo pipefail
. "$(dirname "$0")/outside.sh"
sprat=$(realpath "$1")
picture=$(realpath "$2")
scratch

# expect STATUS COMMAND...: what it says is in out and err.
expect() {
  local status=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$status" ] || fault "status $got, not $status: $*"
}

make_runs() {
  write_tiny
  local run
  for run in seed-3 seed-3b; do
    expect 0 "$sprat" train tiny.yaml --run T/base/$run log.every=4 \
      train.epochs=7
  done
  expect 0 "$sprat" train tiny.yaml --run 'T/dgc/<b>&"x' compress.name=dgc \
    compress.ratio=0.05 'compress.warmup=[]'
  expect 4 "$sprat" train tiny.yaml --run T/failed optim.lr=1e6 \
    optim.weight_decay=1000
  # One that was killed as it wrote.
  cp -r T/base/seed-3 T/killed
  rm T/killed/result.json
  printf '{"kind":"epoch","epoch":8,"st' >>T/killed/metrics.jsonl
}

writes_pages() {
  expect 0 "$sprat" report T -o a.html --svg charts --png charts
  said out '^a\.html: 5 runs, [0-9]+ charts' '^charts: [0-9]+ charts as PNG'
  said err 'T/killed/metrics.jsonl: the last line is cut off'
  expect 0 "$sprat" report T -o b.html --title 'a <title>'
  expect 0 "$sprat" report T -o c.html
  cmp -s a.html c.html || fault "the same runs gave another page"
  cmp -s a.html b.html && fault "the title makes no difference"
  [ "$(wc -c <a.html)" -lt 2000000 ] || fault "the page is too large"
  grep -q '&lt;b&gt;&amp;&quot;x' a.html || fault "a run's name is missing"
  grep -q '<b>&"x' a.html && fault "a run's name is not escaped"
  local part
  for part in learning communication speed layers settings; do
    grep -q "<section id=\"$part\">" a.html || fault "no section $part"
  done
  expect 0 "$sprat" report T/failed
  [ -s report.html ] || fault "without -o there is no report.html"
}

# Nothing but the page itself: no address, no reference but to its own parts.
needs_nothing() {
  grep -oE 'https?://[^"<> ]*' a.html >err &&
    fault "the page has addresses"
  grep -oE '(src|href)="[^"]*"|url\([^)]*\)|@import' a.html |
    grep -vE '^href="(#[a-z]+|data:,)"$' >err &&
    fault "the page refers to files"
  grep -h -oE 'https?://[^"<> ]*' charts/*.svg | sort -u >out
  [ "$(cat out)" = http://www.w3.org/2000/svg ] ||
    fault "charts have addresses"
}

draws_charts() {
  local file
  for file in loss accuracy rate packet-bytes items time bytes-3 weights-1; do
    [ -s "charts/$file.svg" ] || fault "no charts/$file.svg"
    "$picture" "charts/$file.png" >out 2>err || fault "charts/$file.png"
    awk '$1 < 1000 || $3 < 120 || $4 < 1 { exit 1 }' out ||
      fault "charts/$file.png is blank or dark"
  done
  command -v xmllint >/dev/null || return
  for file in charts/*.svg; do
    expect 0 xmllint --noout --nonet "$file"
  done
}

refuses() {
  expect 2 "$sprat" report
  expect 2 "$sprat" report nowhere
  said err 'nowhere: is no folder'
  mkdir -p empty
  expect 2 "$sprat" report empty
  said err 'empty: no run in it'
  expect 2 "$sprat" report T -o nowhere/a.html
  said err 'nowhere/a.html'
  cp T/base/seed-3/metrics.jsonl before
  expect 2 "$sprat" report T -o T/base/seed-3/metrics.jsonl
  said err 'metrics.jsonl is of the run'
  cmp -s before T/base/seed-3/metrics.jsonl || fault "a run was written over"
  cp -r T/killed garbage
  echo rubbish >>garbage/metrics.jsonl
  expect 2 "$sprat" report garbage
  said err 'garbage/metrics.jsonl:[0-9]+: this line is not JSON'
}

compares() {
  expect 0 "$sprat" compare T/base/seed-3 T/base/seed-3b
  said out 'same bits through step 100' 'settings: all the same' 'results: the same'
  expect 1 "$sprat" compare T/base/seed-3 'T/dgc/<b>&"x'
  said out 'compress\.name +none . dgc' 'results: they differ'
  expect 1 "$sprat" compare T/base/seed-3 T/failed --json
  [ "$(wc -l <out)" = 1 ] || fault "--json printed more than an object"
  said out '"differ":true'
  expect 0 "$sprat" compare T/base/seed-3{,b}/checkpoints/last
  said out '0 different'
  expect 1 "$sprat" compare T/base/seed-3/checkpoints/{start,last} --json
  said out '"name":"fc1.weight","is":"different"'
  expect 2 "$sprat" compare T/base/seed-3 T/base/seed-3/checkpoints/last
  expect 2 "$sprat" compare T/base/seed-3 nowhere
  expect 2 "$sprat" compare T/base/seed-3
}

# ---- In a browser -----------------------------------------------------------

find_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" && return
  done
  return 1
}

# browse ARGUMENT...: standard output to out, the log with what pages say to err.
browse() {
  timeout 90 "$browser" --headless --no-sandbox --disable-gpu \
    --disable-dev-shm-usage --hide-scrollbars --no-first-run \
    --disable-background-networking --user-data-dir="$work/browser" \
    --enable-logging=stderr --v=0 "$@" >out 2>err </dev/null
}

# quiet: the page said nothing to the console.
quiet() { ! grep -E 'CONSOLE|Refused to' err >said || { cat said; false; }; }

# Whether this browser can be used at all, and tells what pages say.
try_browser() {
  echo '<title>t</title><p>shown<script>console.error("loud")</script>' \
    >loud.html
  browse --dump-dom "file://$work/loud.html" && grep -q shown out || return 1
  quiet >/dev/null && return 1
  return 0
}

# shot NAME ARGUMENT...: NAME.png of the page.
shot() {
  local name=$1
  shift
  browse --window-size=1280,1600 --screenshot="$work/$name.png" "$@" \
    "file://$work/a.html" || fault "no screenshot: $name"
  quiet || fault "$name: the page has something to say"
  "$picture" "$name.png" >"$name.is" 2>err || fault "$name.png"
}

is_seen() {
  shot light --blink-settings=preferredColorScheme=1
  shot dark --blink-settings=preferredColorScheme=0
  awk '$3 < 200 || $4 < 1 { exit 1 }' light.is ||
    fault "light: dark or blank, $(cat light.is)"
  awk '$3 > 80 || $4 < 1 { exit 1 }' dark.is ||
    fault "dark: light or blank, $(cat dark.is)"
}

# With a pointer over a chart, its values are told: in a copy that may run a
# second script.
tells_values() {
  sed -E 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' a.html >t.html
  cat >>t.html <<'HTML'
<script>var s=document.querySelector('svg[data-x]'),r=s.getBoundingClientRect();
s.dispatchEvent(new PointerEvent('pointermove',
{clientX:r.left+r.width/2,clientY:r.top+r.height/2}));</script>
HTML
  browse --dump-dom "file://$work/t.html" || fault "the browser failed"
  quiet || fault "pointing at a chart is an error"
  grep -oE '<div class="tip".*' out | grep -q 'seed-3 test' ||
    fault "pointing at a chart tells nothing"
}

make_runs
[ $failed = 0 ] || exit 1
writes_pages
needs_nothing
draws_charts
refuses
compares
browser=$(find_browser) && try_browser || {
  [ $failed = 0 ] || exit 1
  echo "skipped: no browser"
  exit 77
}
is_seen
tells_values
[ $failed = 0 ]
