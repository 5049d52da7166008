// Finds a kernel function's row. The rows are in kfuncs.def, sorted by name.
#include "runtime/verifier/kfuncs.h"

#include <algorithm>
#include <array>

namespace rawbpf::inline v0::verifier {

namespace {

constexpr auto kernel_functions() {
    using namespace kfunc;
    return std::to_array<KernelFunction>({
#define RAWBPF_KFUNC(name, major, minor, sets, flags) {#name, {major, minor}, #sets, flags},
#include "runtime/verifier/kfuncs.def"
#undef RAWBPF_KFUNC
    });
}
constexpr auto kKernelFunctions = kernel_functions();
static_assert(std::is_sorted(kKernelFunctions.begin(), kKernelFunctions.end(),
                             [](const KernelFunction &a, const KernelFunction &b) { return a.name < b.name; }));

} // namespace

const KernelFunction *find_kernel_function(std::string_view name) {
    const auto found = std::lower_bound(kKernelFunctions.begin(), kKernelFunctions.end(), name,
                                        [](const KernelFunction &row, std::string_view wanted) { return row.name < wanted; });
    return found != kKernelFunctions.end() && found->name == name ? &*found : nullptr;
}

} // namespace rawbpf::inline v0::verifier
