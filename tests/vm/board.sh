# A board's rawbpf inside a guest of its machine: what a board does, a line a test. busybox's shell; the static rawbpf and workload.
# Programs are interpreted where the kernel's default says so (riscv64), which is tried as it is.
failures=0
verdict() { # verdict NAME STATUS FILE
  if [ "$2" = 0 ]; then
    echo "PASS $1"
  else
    sed 's/^/  /' "$3" | tail -20
    echo "FAIL $1"
    failures=$((failures + 1))
  fi
}
try() { # try NAME PATTERN COMMAND...: its output, or what it says, has the pattern
  local name=$1 pattern=$2 status=0
  shift 2
  "$@" >out 2>&1 || status=$?
  grep -q "$pattern" out || status=1
  verdict "$name" $status out
}
has() { ! rawbpf version -v | grep -q ", no $1\>"; } # has PART: this build does
machine=$(uname -m)
! has doctor || try "doctor knows the machine" "Linux .*, $machine, " rawbpf doctor
rawbpf profile -F 499 -q --record - -- demo-workload 1 >capture 2>out
if has report; then
  try "a command's stacks, named" 'world::' rawbpf profile -F 499 -f folded -- demo-workload 1
  try "a capture is named later" 'world::' rawbpf report capture -f folded
else
  try "a capture for another machine" 'samples in' sh -c 'rawbpf profile -F 499 --record - -- demo-workload 1 >again'
fi
try "a call of a program, with its arguments" 'main(arg0=0x2, ' rawbpf trace -n 1 'uprobe:/usr/bin/demo-workload:main' -- demo-workload 0.1
rawbpf trace syscall:openat -q --record calls -- cat /etc/passwd >out 2>&1
! has report || try "calls are shown later" 'openat(.*passwd.*O_RDONLY' rawbpf report calls
try "a system call, with its arguments" 'openat(.*passwd' rawbpf trace 'syscall:openat' -- cat /etc/passwd
! has asm || try "source text is loaded, attached, and its map read" 'calls (' rawbpf load --attach -d 1 count.asm
try "an object is loaded, attached, and its map read" 'calls (' rawbpf load --attach -d 1 count.o
has refusals || try "a refusal in one sentence" 'the verifier refused it: .*R0' sh -c 'rawbpf load refused.o; [ $? = 1 ]'
try "programs and maps are listed" 'kprobe  *on_open' sh -c 'rawbpf load --attach -d 3 count.o >/dev/null 2>&1 & sleep 1; rawbpf prog list && rawbpf map list | grep calls; wait'
cat >wait.exp <<'A'
on kprobe:vfs_open {
    @opened[1] += 1
}
workload cat /etc/passwd
expect opened[1] >= 1
A
try "an experiment" 'holds' rawbpf run wait.exp
! has exec || try "an experiment in the emulator" 'holds' sh -c 'printf "asm {\nr0 = 7\nexit\n}\npacket 00\nexpect packet.result == 7\n" >e.exp; rawbpf run --emulate e.exp'
try "within 32 MB" 'loaded' sh -c 'ulimit -v 32768; rawbpf load count.o'
# Code without frame pointers: whole stacks by tables. Interpreted, and compiled.
if command -v deep >/dev/null; then
  for jit in 0 1; do
    echo $jit >/proc/sys/net/core/bpf_jit_enable
    rawbpf profile -F 299 -d 2 -f folded -- deep >folded 2>out
    sed -n 's/.*stack ends  *//p' out | tr , '\n' | awk '{ all += $NF } $1 == "root" { root = $2 } END { exit !(all >= 100 && root >= 0.97 * all) }' || echo bad >>out
    grep -q '__libc_start_call_main;main;down;down;down;down;down;down;down;down;down;down' folded || echo bad >>out
    grep -q '^bad' out
    verdict "whole stacks of code without frame pointers, net.core.bpf_jit_enable=$jit" $((1 - $?)) out
  done
fi
[ $failures = 0 ]
