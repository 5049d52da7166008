# In the guest: a congestion control of our own carries 2 MB from a server to a client
rawbpf load --attach -d 6 congestion.o &
sleep 3
sysctl -w net.ipv4.tcp_congestion_control=lesson
mkdir /tmp/www
dd if=/dev/zero of=/tmp/www/file bs=1k count=2000 2>/dev/null
httpd -h /tmp/www
wget -q -O /dev/null http://127.0.0.1/file && echo received
wait
