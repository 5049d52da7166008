# The command line inside a guest: busybox's shell, the static rawbpf, the static demo workload. One line a test.
# Emulated machines are slow and their clocks coarse: shapes are checked here, shares and rates are not.
# Between a name and a time or a reason there is a tab, as tests/support/main.cpp has it.
cd /tmp
failures=0
hundredths() { # since the machine was started
  read -r up _ </proc/uptime
  up=${up%.*}${up#*.}
  up=${up#0} up=${up#0} # a number that begins with 0 is octal
}
hundredths
before=$up
took() { # the seconds since the last verdict
  hundredths
  printf '%d.%02d\n' $(((up - before) / 100)) $(((up - before) % 100))
}
verdict() {
  printf '%s\tcli: %s\t%s\n' "$1" "$2" "${3:-$(took)}"
  hundredths
  before=$up
}
pass() { verdict PASS "$1"; }
fail() {
  printf '%s\n' "$2" | sed 's/^/  /'
  verdict FAIL "$1"
  failures=$((failures + 1))
}
skip() { verdict SKIP "$1" "$(printf %s "$2" | tr "\n\t" "  ")"; }
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
$work 60 &
busy=$!
if rawbpf profile -F 199 -d 1 -f folded -o f2 2>e && grep -q 'world::' f2; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi
name="one process by its id"
if rawbpf profile -F 199 -d 1 -p $busy -f folded -o f3 2>e && grep -q 'world::' f3 && ! grep -v '^demo-workload' f3; then
  pass "$name"
else fail "$name" "$(tail -3 e)"; fi
kill $busy
wait $busy 2>/dev/null

name="kernel stacks have names"
if rawbpf profile -F 499 --kernel-stacks -f folded -o f4 -- dd if=/dev/zero of=/dev/null bs=64k count=20000 2>e && grep -q '_\[k\]' f4; then
  pass "$name"
else fail "$name" "$(tail -3 e; head -3 f4)"; fi

name="the words that --bpf took when there were two programs"
if rawbpf profile --bpf dsl -F 199 -f folded -o f5 -- $work 1 2>e && grep -q 'world::' f5; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi

name="the hardware clock"
rawbpf profile --hw -F 199 -f folded -o f7 -- $work 1 2>e
case $? in
0) if grep -q 'world::' f7; then pass "$name"; else fail "$name" "$(tail -3 e)"; fi ;;
3) if grep -Eqi 'pmu|hardware' e; then skip "$name" "needs a hardware PMU"; else fail "$name" "$(tail -3 e)"; fi ;;
*) fail "$name" "$(tail -3 e)" ;;
esac

# A sample has kernel frames when it was taken in the kernel, whatever the clock: by the registers of the interrupted code, whose
# mode is told differently on each architecture. (Where a machine is emulated ticks come late, and meet the end of the tick before
# them: such stacks begin with the interrupt's entry and are neither.)
# modes FILE COMM: samples of COMM in system calls, in user code, all
modes() {
  awk -v comm="$2;" '{ n = $NF; $NF = ""; if (index($0, comm) != 1) next; all += n
    if ($0 !~ /_\[k\]/) user += n
    else if ($0 ~ /do_syscall_64_\[k\]|el0_svc_\[k\]/) calls += n } END { print calls + 0, user + 0, all + 0 }' "$1"
}
for clock in "" --hw; do
  name="user code has user stacks, system calls have kernel stacks${clock:+, by the hardware clock}"
  rawbpf profile $clock -F 499 -f folded -o m1 -- $work 1 2>e
  status=$?
  if [ $status = 3 ] && [ -n "$clock" ] && grep -Eqi 'pmu|hardware' e; then
    skip "$name" "needs a hardware PMU"
    continue
  fi
  rawbpf profile $clock -F 499 -f folded -o m2 -- dd if=/dev/zero of=/dev/null bs=1M count=600 2>e2
  set -- $(modes m1 demo-workload) $(modes m2 dd)
  if [ $status = 0 ] && [ $3 -gt 50 ] && [ $(($1 * 5)) -lt $3 ] && [ $(($2 * 10)) -gt $(($3 * 3)) ] &&
    [ $6 -gt 20 ] && [ $(($4 * 10)) -gt $(($6 * 7)) ] && [ $(($5 * 5)) -lt $6 ]; then
    pass "$name"
  else fail "$name" "samples in system calls, in user code, all: $1 $2 $3 of user code, $4 $5 $6 of system calls $(tail -2 e e2)"; fi
done

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
rawbpf profile -F 99 -f folded -o f9 --ready-fd 3 2>e 3>ready &
it=$!
tries=0 # the start takes a second or more where everything is emulated
while [ ! -s ready ] && [ $tries -lt 300 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
$work 1
kill -INT $it
wait $it
status=$?
if [ $status = 0 ] && grep -q 'world::' f9; then pass "$name"; else fail "$name" "exit $status $(tail -3 e)"; fi

# What this kernel is known for (the release notes, tried by hand), against what doctor finds out.
name="doctor knows this kernel"
since_5_15="perf event links;bpf_get_attach_cookie();bpf_task_pt_regs();bpf_loop()"
since_6_4="netfilter programs;uprobe.multi;tcx;netkit;arenas;kprobe sessions;uprobe sessions"
always="names of maps and programs;loading BTF;global data;freezing maps;bpf_probe_read_kernel();batch commands;struct_ops;ring buffers;iterators
run-time statistics;XDP links;typed raw tracepoints;CPU clock;kprobes;uprobes;tracepoints;kernel BTF;tracefs;bpffs"
case $RAWBPF_KERNEL in
5.10) yes="fentry and fexit;LSM programs" no="$since_5_15;kprobe.multi;user ring buffers;$since_6_4;PMU cycles" ;;
6.1) yes="fentry and fexit;LSM programs;$since_5_15;user ring buffers" no="kprobe.multi;$since_6_4;PMU cycles" ;;
6.12)
  yes="fentry and fexit;LSM programs;$since_5_15;kprobe.multi;user ring buffers;netfilter programs;uprobe.multi;tcx;netkit;arenas;kprobe sessions"
  no="uprobe sessions;PMU cycles"
  ;;
6.18 | newest) yes="fentry and fexit;LSM programs;$since_5_15;kprobe.multi;user ring buffers;$since_6_4" no="PMU cycles" ;;
arm64-6.1) yes="$since_5_15;user ring buffers;PMU cycles" no="fentry and fexit;LSM programs;kprobe.multi;$since_6_4" ;;
arm64-6.12)
  yes="fentry and fexit;LSM programs;$since_5_15;user ring buffers;netfilter programs;uprobe.multi;tcx;netkit;arenas;PMU cycles"
  no="kprobe.multi;kprobe sessions;uprobe sessions"
  ;;
arm64-6.18) yes="fentry and fexit;LSM programs;$since_5_15;kprobe.multi;user ring buffers;$since_6_4;PMU cycles" no="" ;;
*) yes="" no="" ;;
esac
rawbpf doctor --json >d 2>e
wrong=
expect() { # expect true|false "row;row"
  while IFS= read -r row; do
    [ -z "$row" ] || grep -qF "\"name\":\"$row\",\"ok\":$1" d || wrong="$wrong, $row isn't $1"
  done <<ROWS
$(echo "$2" | tr ';' '\n')
ROWS
}
expect true "$always"
expect true "$yes"
expect false "$no"
if [ -z "$yes" ]; then skip "$name" "needs RAWBPF_KERNEL to be one of ./dev vm --list"
elif [ -z "$wrong" ]; then pass "$name"
else fail "$name" "${wrong#, } $(tail -2 e)"; fi

# Trampolines, which the machine that builds this may refuse: loaded, attached, run, and gone.
objects=/usr/lib/rawbpf
has() { rawbpf doctor --json 2>/dev/null | grep -qF "\"name\":\"$1\",\"ok\":true"; }
# attached N FILE: waits until so many lines of FILE say that something is attached
attached() {
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$(grep -c ': attached: ' $2)" -ge $1 ] && return
    sleep 0.5
  done
  return 1
}
name="trampolines load, attach and run: fentry, fexit, fmod_ret, lsm, struct_ops"
if [ ! -e $objects/trampolines.bpf.o ]; then skip "$name" "needs clang where the tests are built"
elif ! has "fentry and fexit" || ! has "LSM programs"; then skip "$name" "needs BPF trampolines and BPF among the security modules"
else
  : >t2
  rawbpf load --attach $objects/trampolines.bpf.o >t1 2>t2 &
  it=$!
  if attached 5 t2; then
    chroot / true
    available=$(cat /proc/sys/net/ipv4/tcp_available_congestion_control)
    kill -INT $it
    wait $it
    status=$?
    after=$(cat /proc/sys/net/ipv4/tcp_available_congestion_control)
    decided=1
    grep -q bpf /sys/kernel/security/lsm || decided=0 # attached, but this kernel asks no BPF
    if [ $status = 0 ] && grep -q '^ *entered = 1$' t1 && grep -q '^ *left = 1$' t1 && grep -q '^ *asked = 1$' t1 &&
      grep -q "^ *decided = $decided\$" t1 && echo "$available" | grep -q rawbpf_cli && ! echo "$after" | grep -q rawbpf_cli; then
      pass "$name"
    else fail "$name" "exit $status; $available; $after; $(tail -12 t1; cat t2)"; fi
  else
    kill $it
    wait $it
    fail "$name" "$(cat t2)"
  fi
fi
name="freplace takes a function of a program, which is named or pinned"
if [ ! -e $objects/replace.bpf.o ]; then skip "$name" "needs clang where the tests are built"
elif ! has "fentry and fexit"; then skip "$name" "needs BPF trampolines"
elif rawbpf load --prog entry --pin /sys/fs/bpf/target $objects/replace.bpf.o >t1 2>e &&
  rawbpf load --attach -d 0.1 --prog instead --target /sys/fs/bpf/target/entry $objects/replace.bpf.o >t1 2>t2 &&
  rawbpf load --attach -d 0.1 --prog instead --target entry $objects/replace.bpf.o >t1 2>>t2 &&
  [ "$(grep -c 'attached: freplace answer' t2)" = 2 ]; then
  rawbpf load --prog instead --target no_such_program $objects/replace.bpf.o 2>t3
  one=$?
  rawbpf load --prog instead $objects/replace.bpf.o 2>t4
  if [ $one = 1 ] && grep -q 'no program called no_such_program' t3 && grep -q -- '--target' t4; then pass "$name"
  else fail "$name" "$one $(cat t3 t4)"; fi
else fail "$name" "$(cat e t2)"; fi
rm -rf /sys/fs/bpf/target

# The function call tracer. dd reads as often as it is told to; it opens its program, its input and its output, and at the end it writes
# what it did, in one to three pieces.
# count FUNCTION FILE: its calls in "FUNCTION : 1,000 calls"
count() { sed -n "s/^$1 *: \([0-9,]*\) calls\$/\1/p" "$2" | tr -d ,; }
name="trace: functions of the kernel, with paths and sizes, right to the call"
if rawbpf trace vfs_read vfs_write vfs_open -o t1 -- sh -c 'echo a >/tmp/passwd; read x </tmp/passwd' 2>e &&
  grep -Eq '^\[20[0-9-]*T[0-9:]*\.[0-9]{3}\] sh\[[0-9]+\]: vfs_open\(path=/tmp/passwd, file=0x' t1 &&
  [ "$(grep -c 'vfs_write(file=/tmp/passwd, buf=0x[0-9a-f]*, count=2, pos=' t1)" = 1 ] &&
  [ "$(grep -c 'vfs_read(file=/tmp/passwd, buf=0x[0-9a-f]*, count=' t1)" = "$(count vfs_read t1)" ] &&
  rawbpf trace vfs_read vfs_write vfs_open --count -o t2 -- dd if=/dev/zero of=/dev/null bs=10 count=1000 2>>e &&
  [ "$(count vfs_read t2)" = 1000 ] && [ "$(count vfs_open t2)" = 3 ] && [ "$(count vfs_write t2)" -ge 1000 ] && [ "$(count vfs_write t2)" -le 1003 ] &&
  rawbpf trace kprobe:vfs_read -o t3 -- dd if=/dev/zero of=/dev/null bs=10 count=1000 2>>e &&
  [ "$(grep -c ' dd\[[0-9]*\]: vfs_read(file=/dev/zero, buf=0x[0-9a-f]*, count=10, pos=0x' t3)" = 1000 ]; then
  pass "$name"
else fail "$name" "$(tail -5 t1; cat t2; tail -3 t3; tail -20 e)"; fi

name="trace: a thousand functions of the kernel at once"
if ! has "kprobe.multi"; then skip "$name" "needs kprobe.multi"
elif rawbpf trace 'kprobe:*a*_*e*r' --count --json -o t1 -- cat /etc/passwd >t2 2>e && cmp -s t2 /etc/passwd &&
  [ "$(grep '"type":"counts"' t1 | tr , '\n' | grep -c ':[0-9]')" -ge 1000 ] && grep -q 'skipped [0-9]* of [0-9]* functions, which' e; then
  pass "$name"
else fail "$name" "$(tail -5 e)"; fi

name="trace: system calls and tracepoints"
if rawbpf trace syscall:openat --errors -o t1 -- cat /no/such/file 2>e; [ "$(grep -c 'openat(.*ENOENT' t1)" = 1 ] &&
  rawbpf trace tracepoint:sched:sched_process_exit --count -o t2 -- sh -c '(true); (true); true' 2>>e && [ "$(count sched_process_exit t2)" -ge 3 ]; then
  pass "$name"
else fail "$name" "$(cat t1 t2; tail -5 e)"; fi

# Calls are exact. Of their returns the kernel misses those that come while as many calls as there are CPUs are going on already
# (kretprobes' maxactive, which perf events can't raise): here the tracer's own vfs_write(), when it is preempted in one. So at least some
# returns are wanted, with the right value, and never more than calls.
name="the lesson's function call tracer, with kprobes, right to the call"
if $objects/function-tracer --calls 1000 --returns >t1 2>e &&
  [ "$(count vfs_read t1)" = 1000 ] && [ "$(count vfs_write t1)" = 1000 ] && [ "$(count vfs_open t1)" = 1000 ] &&
  [ "$(grep -c '^\[20.*\]: vfs_read(0x[0-9a-f]*, 0x[0-9a-f]*, 0x1000, \.\.\.)$' t1)" = 1000 ] &&
  returns=$(grep -c '^\[20.*\]: vfs_write = 14$' t1) && [ "$returns" -ge 100 ] && [ "$returns" -le 1000 ] && grep -q '^=== Lab 5.1 Complete! ===$' t1 &&
  $objects/function-tracer --strings -- sh -c 'echo hello >/dev/null' >t2 2>>e &&
  grep -q '^\[20.*\] sh\[[0-9]*\]: vfs_write(.* "hello\.' t2 && $objects/function-tracer --user --calls 5 >t3 2>>e && [ "$(count user_write t3)" = 5 ]; then
  pass "$name"
else fail "$name" "$(for of in 'vfs_read(' 'vfs_write(' 'vfs_open(' 'vfs_read =' 'vfs_write = 14' 'vfs_open ='; do echo "$of: $(grep -cF "]: $of" t1)"; done
  tail -14 t1; tail -20 t2; cat e)"; fi

# Custom traces: the example's program reports five ids.
# five FILE: whether its JSON lines are those five traces, each with main under report_trace
five() {
  [ "$(grep -c '"type":"trace","origin":"custom"' $1)" = 5 ] &&
    [ "$(sed -n 's/.*"origin":"custom","context":"\(0x[0-9a-f]*\)".*/\1/p' $1 | tr '\n' ' ')" = "0x1000 0x1001 0x1002 0x1003 0x1004 " ] &&
    [ "$(grep -c '"user":\[{"addr":"[^"]*","symbol":"report_trace",[^}]*},{"addr":"[^"]*","symbol":"main",' $1)" = 5 ] &&
    tail -1 $1 | grep -q '"fired":5,"shown":5,'
}
name="custom: the example's five traces, contexts 4096 to 4100, main under report_trace"
example=$objects/test_program
if rawbpf custom $example:report_trace --json -o t1 -- $example >t2 2>e && five t1 &&
  rawbpf custom $example:report_trace -v -- $example >t2 2>>e && grep -q '^Context Value: 4100 (0x1004)$' t2 &&
  grep -q '^Traces - Total: 5, Custom: 5, Sampling: 0$' e && grep -q ': a tail call takes .*[0-9] ns here$' e; then
  pass "$name"
else fail "$name" "$(cat t1 t2; tail -8 e)"; fi
name="custom: the example's own programs, compiled: by thread, by CPU, without a tail call"
if [ ! -e $objects/example_tailcall.bpf.o ]; then skip "$name" "needs clang where the tests are built"
elif rawbpf custom --object $objects/example_tailcall.bpf.o $example:report_trace --json -o t1 -- $example >t2 2>e && five t1 &&
  rawbpf custom --object $objects/example_subprogram.bpf.o $example:report_trace --json -o t1 -- $example >t2 2>>e && five t1 &&
  rawbpf custom --object $objects/example_per_cpu.bpf.o $example:report_trace --json -o t1 -- $example >t2 2>>e &&
  [ $(($(grep -c '"origin":"custom"' t1) + $(tail -1 t1 | sed -n 's/.*"no_context_of_its_thread":\([0-9]*\).*/\1/p;t;s/.*/0/p'))) = 5 ]; then
  pass "$name"
else fail "$name" "$(cat t1 t2; tail -8 e)"; fi

# The kernel charges BPF maps to the cgroup too (since 5.11).
name="in 32 MB of memory"
small=/sys/fs/cgroup/small
if echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>e && mkdir $small && echo 32M >$small/memory.max; then
  if sh -c "echo \$\$ >$small/cgroup.procs; exec rawbpf profile -F 199 -f folded -o s1 -- $work 1" 2>e && grep -q 'world::simulate' s1 &&
    grep -q '^oom_kill 0' $small/memory.events; then
    pass "$name"
  else fail "$name" "$(tail -3 e; cat $small/memory.events)"; fi
  rmdir $small
else skip "$name" "needs the memory controller of cgroup v2: $(cat e)"; fi

name="the kernel's BTF hidden, and given as a file"
cp /sys/kernel/btf/vmlinux btf
if mount -t tmpfs none /sys/kernel/btf; then
  if rawbpf profile -F 199 -f folded -o h1 -- $work 1 2>e && grep -q 'world::simulate' h1 && ! rawbpf btf dump vmlinux -f c task_struct >h2 2>e2 &&
    grep -q "can't be seen whether this kernel has it" e2 && rawbpf btf dump btf -f c task_struct >h3 2>>e && grep -q '^struct task_struct {' h3 &&
    rawbpf doctor --json | grep -q '"name":"kernel BTF","ok":false'; then
    pass "$name"
  else fail "$name" "$(cat e2) $(tail -3 e)"; fi
  umount /sys/kernel/btf
else fail "$name" "can't mount a tmpfs over it"; fi
[ $failures = 0 ]
