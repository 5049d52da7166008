// Prints a flame graph of invented stacks for the browser's tests: a split of 3 to 1, kernel frames, hostile names, recursion, a
// narrow tower; with the word "deep" one stack of a hundred frames. The same bytes every time.
#include <cstdio>
#include <cstring>

#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

std::vector<std::pair<NamedSample, uint64_t>> deep() {
    std::vector<FramePtr> frames;
    for (int i = 0; i < 100; ++i) frames.push_back(user_frame("f" + std::to_string(i)));
    return {{stack("deep", frames), 100}};
}

int print_graph(const std::vector<std::pair<NamedSample, uint64_t>> &samples) {
    const std::string svg = rendered(render::Format::svg, samples);
    std::fwrite(svg.data(), 1, svg.size(), stdout);
    return 0;
}

} // namespace

int main(int count, char **words) {
    if (count > 1 && std::strcmp(words[1], "deep") == 0) return print_graph(deep());
    auto libc = [](const char *symbol) { return user_frame(symbol, "/usr/lib/libc.so.6"); };
    std::vector<FramePtr> base{user_frame("_start"), libc("__libc_start_main"), user_frame("main"),
                               user_frame("workload(double)")};
    auto on = [&](std::initializer_list<FramePtr> more) {
        std::vector<FramePtr> out = base;
        out.insert(out.end(), more);
        return out;
    };
    std::vector<std::pair<NamedSample, uint64_t>> samples{
        {stack("split", on({user_frame("hot_a(long)")})), 2250},
        {stack("split", on({user_frame("hot_b(long)")})), 700},
        {stack("split", on({user_frame("hot_b(long)")}),
               {kernel_frame("asm_sysvec_apic_timer_interrupt"), kernel_frame("irq_exit_rcu")}),
         50},
        {stack("split", on({user_frame("walk"), user_frame("walk"), user_frame("walk")})), 400},
        {stack("<b>&\"evil'", {user_frame("</title><script>document.documentElement.dataset.owned=1</script>"), user_frame("")}),
         300},
        {stack("kworker/0:1", {}, {kernel_frame("ret_from_fork"), kernel_frame("kthread"), kernel_frame("worker_thread")}), 299},
        {stack("narrow", {user_frame("std::vector<std::pair<int, std::string>>::emplace_back(int&&, std::string&&)")}), 1},
    };
    return print_graph(samples);
}
