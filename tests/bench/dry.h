/* Loading without a kernel that does anything: see dry.c. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* From now on maps, programs and BTF are "made" at once. */
void dry_kernel(int on);
/* Opens and loads an object with libbpf; whether it went well. Only with RAWBPF_BENCH_LIBBPF. */
int dry_libbpf(const char *path);

#ifdef __cplusplus
}
#endif
