# The command line inside a guest: busybox's shell, the static rawbpf, the static demo workload. One line a test.
# Emulated machines are slow and their clocks coarse: shapes are checked here, shares and rates are not.
cd /tmp
pass() { echo "PASS cli: $1"; }
fail() { echo "  $2"; echo "FAIL cli: $1"; }
skip() { echo "SKIP cli: $1: $2"; }
work=demo-workload

name="version"
case $(rawbpf --version) in rawbpf*) pass "$name" ;; *) fail "$name" "$(rawbpf --version 2>&1)" ;; esac

name="a command's stacks, named"
if rawbpf profile -F 199 -f folded -o f1 -- $work 2 2>e && grep -q 'world::simulate' f1 && grep -Eq '^demo-workload;.* [0-9]+$' f1; then
  pass "$name"
else fail "$name" "$(tail -3 e; head -3 f1)"; fi

name="the ledger adds up"
rawbpf profile -F 499 --json -o j1 -- $work 1 2>e
ledger=$(tail -1 j1)
field() { echo "$ledger" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }
lost=$(echo "$ledger" | sed -n 's/.*"lost":{\([^}]*\)}.*/\1/p' | tr ',' '\n' | awk -F: '{ n += $2 } END { print n + 0 }')
fired=$(field fired)
if [ "${fired:-0}" -gt 20 ] && [ "$fired" = $(($(field shown) + $(field filtered) + $(field sampled_out) + lost)) ]; then
  pass "$name"
else fail "$name" "$ledger $(tail -2 e)"; fi

name="the whole machine"
$work 4 &
busy=$!
if rawbpf profile -F 199 -d 1 -f folded -o f2 2>e && grep -q 'world::' f2; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi
name="one process by its id"
if rawbpf profile -F 199 -d 1 -p $busy -f folded -o f3 2>e && grep -q 'world::' f3 && ! grep -v '^demo-workload' f3; then
  pass "$name"
else fail "$name" "$(tail -3 e)"; fi
kill $busy
wait $busy 2>/dev/null

name="kernel stacks have names"
if rawbpf profile -F 499 --kernel -f folded -o f4 -- dd if=/dev/zero of=/dev/null bs=64k count=20000 2>e && grep -q '_\[k\]' f4; then
  pass "$name"
else fail "$name" "$(tail -3 e; head -3 f4)"; fi

name="both BPF programs, clang's and the DSL's"
if rawbpf profile --bpf dsl -F 199 -f folded -o f5 -- $work 1 2>e && grep -q 'world::' f5; then
  if rawbpf profile --bpf clang -F 199 -f folded -o f6 -- $work 1 2>e; then
    if grep -q 'world::' f6; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi
  elif grep -q 'without clang' e; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi
else fail "$name" "$(tail -3 e)"; fi

name="the hardware clock"
rawbpf profile --hw -F 199 -f folded -o f7 -- $work 1 2>e
case $? in
0) if grep -q 'world::' f7; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi ;;
3) if grep -Eqi 'pmu|hardware' e; then skip "$name" "needs a hardware PMU"; else fail "$name" "$(tail -3 e)"; fi ;;
*) fail "$name" "$(tail -3 e)" ;;
esac

name="record and report"
if rawbpf profile -F 199 --record r -- $work 1 2>e && rawbpf report r -f folded -o f8 2>e && grep -q 'world::' f8; then
  pass "$name"
else fail "$name" "$(tail -3 e)"; fi

name="the narrator"
if rawbpf profile --syscalls -d 1 -o /dev/null -- true 2>e && grep -q 'BPF_PROG_LOAD' e && grep -q 'perf_event_open' e; then
  pass "$name"
else fail "$name" "$(tail -3 e)"; fi

name="a missing process is exit 1, missing privileges are exit 3"
rawbpf profile -p 999999 -d 1 2>e
one=$?
su -s /bin/sh nobody -c 'rawbpf profile -d 1' 2>e3 >/dev/null
three=$?
if [ $one = 1 ] && grep -q 999999 e && [ $three = 3 ] && grep -Eq 'CAP_BPF|CAP_PERFMON|CAP_SYS_ADMIN' e3; then
  pass "$name"
else fail "$name" "$one $three $(cat e e3)"; fi

name="an interrupt ends it cleanly"
rawbpf profile -F 99 -f folded -o f9 2>e &
it=$!
$work 1
kill -INT $it
wait $it
status=$?
if [ $status = 0 ] && grep -q 'world::' f9; then pass "$name"; else fail "$name" "exit $status $(tail -3 e)"; fi
