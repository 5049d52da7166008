"""The programs that are profiled: one splits its time 75 to 25 between two functions, one has threads, children and odd names, one
makes code at run time. They are compiled with frame pointers into the scratch folder, once a run."""
from harness import *

# A leaf function gets no frame from g++, whatever the flags say, unless something needs its frame's address.
SOURCE_SPLIT = r"""
#include <chrono>
#include <cstdlib>
#define FRAME asm volatile("" : : "r"(__builtin_frame_address(0)))
volatile unsigned long sink;
// Aligned alike and in a register: then the two differ in nothing but the number of rounds (tests/kernel/profile_workload.cpp).
#define WORK unsigned long x = sink; for (long i = 0; i < n; ++i) { x = x * 3 + i; asm volatile("" : "+r"(x)); } sink = x; asm volatile("")
__attribute__((noinline, aligned(64))) void hot_a(long n) { FRAME; WORK; }
__attribute__((noinline, aligned(64))) void hot_b(long n) { FRAME; WORK; }
__attribute__((noinline)) void workload(double s) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(s);
  while (std::chrono::steady_clock::now() < end) { hot_a(300000); hot_b(100000); }
  asm volatile("");
}
int main(int c, char **v) { workload(c > 1 ? atof(v[1]) : 3); }
"""


SOURCE_FAMILY = r"""
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
volatile unsigned long sink;
// Of the thread's processor time.
static long spent_ms() { timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
#define BUSY(ms) do { const long end = spent_ms() + ms; \
  while (spent_ms() < end) { for (int i = 0; i < 20000; ++i) sink = sink * 3 + i; close(dup(0)); } } while (0)
__attribute__((noinline)) void in_thread(int ms) { BUSY(ms); asm volatile(""); }
__attribute__((noinline)) void in_child(int ms) { BUSY(ms); asm volatile(""); }
namespace shape { template <class T> struct Area { __attribute__((noinline)) T compute(T ms) { BUSY(ms); return ms; } }; }
int main(int c, char **v) {
  int rounds = c > 1 ? atoi(v[1]) : 1;
  for (int r = 0; r < rounds; ++r) {
    std::thread a(in_thread, 150), b(in_thread, 150);
    shape::Area<int>().compute(100);
    a.join(), b.join();
    for (int i = 0; i < 8; ++i) { if (fork() == 0) { in_child(30); _exit(0); } wait(nullptr); }
  }
}
"""


SOURCE_JIT = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <sys/mman.h>
#include <unistd.h>
int main(int c, char **v) {
#if defined(__x86_64__)
  const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3}; // push rbp; mov; 1: dec rdi; jnz 1b; pop; ret
#else
  const unsigned char code[] = {0xfd,0x7b,0xbf,0xa9, 0xfd,0x03,0x00,0x91, 0x00,0x04,0x00,0xf1, 0xe1,0xff,0xff,0x54, 0xfd,0x7b,0xc1,0xa8, 0xc0,0x03,0x5f,0xd6};
#endif
  void *p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(p, code, sizeof code);
  mprotect(p, 4096, PROT_READ | PROT_EXEC);
  __builtin___clear_cache((char *)p, (char *)p + sizeof code);
  char name[64]; snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(name, "w"); fprintf(f, "%lx %zx jitted::loop\n", (unsigned long)p, sizeof code); fclose(f);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(c > 1 ? atof(v[1]) : 1);
  while (std::chrono::steady_clock::now() < end) ((void (*)(unsigned long))p)(1000000);
}
"""

SPLIT = compile_program("split", SOURCE_SPLIT, "-Wl,--build-id=sha1")
FAMILY = compile_program("family", SOURCE_FAMILY, "-pthread", "-std=c++17")
JIT = compile_program("jit", SOURCE_JIT)
