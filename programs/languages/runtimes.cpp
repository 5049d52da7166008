// The table of the runtimes that there are.
#include "programs/languages/cpython/runtime.h"
#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages {

std::span<const Runtime *const> runtimes() {
    static constexpr const Runtime *kAll[] = {&cpython::kRuntime};
    return kAll;
}

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    for (const Runtime *runtime : runtimes())
        if (auto found = runtime->recognise(file, bytes)) {
            found->runtime = runtime;
            return found;
        }
    return std::nullopt;
}

LanguageProcess moved(LanguageProcess process, uint64_t bias) {
    if ((process.flags & LANGUAGE_BY_THREAD) == 0) process.start += bias;
    if (process.none != 0) process.none += bias;
    return process;
}

} // namespace rawbpf::inline v0::languages
