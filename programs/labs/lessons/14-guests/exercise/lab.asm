# Lesson 14: LSM
#
# The program is for the hook socket_create(family, type, protocol, kern), which decides whether somebody may make a socket. At r1 are
# family, type, protocol, kern, and what the programs before this one decided (0: yes): five numbers, 8 bytes apart. The first four are `int`:
# their upper halves may hold anything. The decision is the result: 0, or minus the number of an error.
# Nobody but the kernel itself (kern is 1) may make raw network sockets (family 17, AF_PACKET): that is error 1, EPERM.
# A refusal by those before must stay.
.license "GPL"
.program on_socket "lsm/socket_create"
    r0 = *(u64 *)(r1 + 32)
    if w0 != 0 goto out            # somebody has refused: so it stays
                                   # TODO: AF_PACKET, and not the kernel itself: r0 = -1
out:
    exit
