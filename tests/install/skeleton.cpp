// A skeleton at work, built without exceptions: constants are set before it is loaded, variables are read while the program runs.
#include "skeleton.skel.h"

#include <cstdio>
#include <unistd.h>

static rawbpf::Result<int> run() {
    auto s = RAWBPF_TRY(skeleton::Skeleton::open());
    s.rodata().step = 3;
    s.data().last.x = 100;
    RAWBPF_TRY(s.load());
    if (s.bss().hits != 0 || s.data().last.x != 100 || s.data().last.tag != 'a') return 1;
    RAWBPF_TRY(s.attach());
    for (int i = 0; i < 1000 && s.bss().hits == 0; ++i) usleep(1000); // each is a system call
    s.detach();
    if (s.bss().hits == 0 || s.bss().hits % 3 != 0 || s.bss().names[0] != 'n') return 2;
    if (s.data().last.color != skeleton::GREEN || !s.data().last.on) return 3;
    auto first = RAWBPF_TRY(s.points_map().get(0));
    if (first.x != 103 || first.tag != 'a') return 4;
    for (const auto &[key, value] : RAWBPF_TRY(s.points_map().entries()))
        if (key % 3 != 0 || value.color != skeleton::GREEN) return 5;
    s.bss().hits = 42; // the program's variable, too
    if (!s.on_enter_program()) return 6;
    return 0;
}

int main() {
    auto result = run();
    if (!result) return fprintf(stderr, "skeleton: %s\n%s\n", result.error().message().c_str(), result.error().log.c_str()), 1;
    return printf("skeleton: %s (%d)\n", *result ? "wrong" : "right", *result), *result;
}
