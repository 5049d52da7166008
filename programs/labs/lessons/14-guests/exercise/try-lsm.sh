# In the guest: the program is attached for 4 seconds. arping makes a raw socket while it is, and again afterwards
rawbpf load --attach -d 4 lab.asm &
sleep 2
echo "with the program:"
arping -c 1 -w 1 -I lo 127.0.0.1
wait
echo "without it:"
arping -c 1 -w 1 -I lo 127.0.0.1
true
