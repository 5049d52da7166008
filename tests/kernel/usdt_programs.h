// What tests/usdt's programs do, once.
#pragma once

int fire_header_probes(); ///< probes.c: providers "app"; prints a line
int fire_go_probes();     ///< go_fork.c: providers "net_http", "sql", "tls" and "net"
