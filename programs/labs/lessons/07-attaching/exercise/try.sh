rawbpf load --attach -d 3 lab.asm &
sleep 1
dd if=/dev/zero of=/dev/null bs=8k count=1000 2>/dev/null
dd if=/dev/zero of=/dev/null bs=512 count=1000 2>/dev/null
wait
