// The table of the runtimes that there are.
#include "programs/languages/cpython/runtime.h"
#include "programs/languages/perl/runtime.h"
#include "programs/languages/php/runtime.h"
#include "programs/languages/ruby/runtime.h"
#include "programs/languages/runtime.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages {

std::span<const Runtime *const> runtimes() {
    static constexpr const Runtime *kAll[] = {&cpython::kRuntime, &perl::kRuntime, &php::kRuntime, &ruby::kRuntime};
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

std::string with_version(std::string_view runtime, uint32_t version) {
    return version == 0 ? std::string(runtime)
                        : format("{} {}.{}.{}", runtime, version >> 16, version >> 8 & 0xff, version & 0xff);
}

std::optional<uint64_t> bias_of(const Interpreter &file, uint64_t start, uint64_t offset) {
    return bias_of(file.code, start, offset);
}

std::optional<uint64_t> bias_of(std::span<const elf::Segment> code, uint64_t start, uint64_t offset) {
    for (const elf::Segment &segment : code) {
        const uint64_t first = segment.offset / 4096 * 4096;
        if (offset < first || offset >= segment.offset + segment.file_size) continue;
        return start - (offset + (segment.address - segment.offset));
    }
    return std::nullopt;
}

LanguageProcess moved(LanguageProcess process, uint64_t bias) {
    if ((process.flags & LANGUAGE_BY_THREAD) == 0) process.start += bias;
    if (process.none != 0) process.none += bias;
    if (process.others != 0) process.others += bias;
    if (process.key != 0) process.key += bias;
    return process;
}

} // namespace rawbpf::inline v0::languages
