// For tests/unwind/odd_files: one file is the program and, with -DLIBRARY, the library under it. Who calls whom is known:
//
//      main < app_outer < app_inner < PREFIX_outer < PREFIX_middle < PREFIX_inner < app_leaf
//
// It never ends. Compiled without frame pointers and without tail calls, so each of them has a frame that only a table can tell.
#define NAME2(prefix, name) prefix##_##name
#define NAME1(prefix, name) NAME2(prefix, name)
#define LIB(name) NAME1(PREFIX, name)

#ifndef MORE
#define MORE 0 // in each of the library's frames
#endif

#ifdef LIBRARY

__attribute__((noinline)) int LIB(inner)(int (*back)(int), int n) {
    volatile int local[5 + MORE] = {n};
    return back(n + local[0]) + local[0];
}
__attribute__((noinline)) int LIB(middle)(int (*back)(int), int n) {
    volatile int local[13 + MORE] = {n};
    return LIB(inner)(back, n) + local[0];
}
__attribute__((noinline)) int library_entry(int (*back)(int), int n) {
    volatile int local[21 + MORE] = {n};
    return LIB(middle)(back, n) + local[0];
}

#else

int library_entry(int (*back)(int), int n);

volatile int sink;
__attribute__((noinline)) int app_leaf(int n) {
    for (int i = 0; i < 20000; ++i) sink = sink * 3 + i;
    return n;
}
__attribute__((noinline)) int app_inner(int n) {
    volatile int local[9] = {n};
    return library_entry(app_leaf, n) + local[0];
}
__attribute__((noinline)) int app_outer(int n) {
    volatile int local[17] = {n};
    return app_inner(n) + local[0];
}
int main(void) {
    for (;;) sink = sink + app_outer(1);
}

#endif
