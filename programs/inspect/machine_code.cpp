// Machine code comes from BPF_OBJ_GET_INFO_BY_FD in one piece, function behind function:
//
//      jited_prog_insns        the bytes of all functions             nr_jited_func_lens    how many each has
//      jited_ksyms             where each begins in the kernel        func_info             its type in BTF, which has the name
//      jited_line_info         an address for each of line_info's lines, in the same order
//
// Kernels before 4.18 give only the bytes; then there is one function. The bytes are for a disassembler (objdump -D -b binary -m
// i386:x86-64): rawbpf has one for BPF, not for machines.
#include "programs/inspect/machine_code.h"

#include <algorithm>
#include <optional>

#include "programs/inspect/btf_source.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/object/spec.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::inspect {
namespace {

constexpr uint32_t kMostBytes = 1U << 26, kMostFunctions = 4096, kMostLines = 1U << 20;

struct Raw {
    std::vector<std::byte> code, functions, lines;
    std::vector<uint64_t> starts, line_addresses;
    std::vector<uint32_t> sizes;
};

Result<Raw> ask(int fd, sys::ProgInfo &has) {
    if (has.jited_prog_len > kMostBytes)
        return fail(Errc::bad_input, "program {}: {} bytes of machine code", has.id, has.jited_prog_len);
    const uint32_t functions = std::min(has.nr_jited_func_lens, kMostFunctions);
    const bool named =
        has.nr_func_info == functions && has.func_info_rec_size >= sizeof(FuncInfo) && has.func_info_rec_size <= 256;
    const bool lined = has.nr_line_info == has.nr_jited_line_info && has.nr_line_info <= kMostLines &&
                       has.line_info_rec_size >= sizeof(LineInfo) && has.line_info_rec_size <= 256 &&
                       has.jited_line_info_rec_size == sizeof(uint64_t);
    Raw out;
    out.code.resize(has.jited_prog_len);
    out.starts.resize(functions);
    out.sizes.resize(functions);
    if (named) out.functions.resize(size_t{functions} * has.func_info_rec_size);
    if (lined) {
        out.lines.resize(size_t{has.nr_line_info} * has.line_info_rec_size);
        out.line_addresses.resize(has.nr_line_info);
    }
    sys::ProgInfo info;
    info.jited_prog_len = has.jited_prog_len;
    info.jited_prog_insns = sys::reg(out.code.data());
    info.nr_jited_ksyms = info.nr_jited_func_lens = functions;
    info.jited_ksyms = sys::reg(out.starts.data());
    info.jited_func_lens = sys::reg(out.sizes.data());
    if (!out.functions.empty()) {
        info.nr_func_info = functions;
        info.func_info_rec_size = has.func_info_rec_size;
        info.func_info = sys::reg(out.functions.data());
    }
    if (!out.lines.empty()) {
        info.nr_line_info = info.nr_jited_line_info = has.nr_line_info;
        info.line_info_rec_size = has.line_info_rec_size;
        info.jited_line_info_rec_size = has.jited_line_info_rec_size;
        info.line_info = sys::reg(out.lines.data());
        info.jited_line_info = sys::reg(out.line_addresses.data());
    }
    TRY_IN(sys::obj_get_info(fd, &info, sizeof info), "program {}: its machine code", has.id);
    if (info.jited_prog_insns == 0)
        return Unexpected(make_error(Errc::permission, format("program {}: the kernel doesn't show its machine code", has.id),
                                     sys::refusal_hint({sys::Capability::bpf, sys::Capability::perfmon})));
    return out;
}

void add_lines(MachineFunction &function, const Raw &raw, const sys::ProgInfo &has, const btf::Btf &types) {
    for (size_t i = 0; i < raw.line_addresses.size(); ++i) {
        const uint64_t at = raw.line_addresses[i] - function.address;
        if (function.address == 0 || at >= function.code.size()) continue;
        const LineInfo one = load<LineInfo>(raw.lines.data() + i * has.line_info_rec_size);
        MachineFunction::Line line{.offset = static_cast<uint32_t>(at), .file = {}, .text = {}, .line = one.number_column >> 10};
        if (const auto text = types.string(one.file)) line.file = *text;
        if (const auto text = types.string(one.line)) line.text = *text;
        function.lines.push_back(std::move(line));
    }
    std::stable_sort(function.lines.begin(), function.lines.end(),
                     [](const auto &a, const auto &b) { return a.offset < b.offset; });
}

} // namespace

Result<std::vector<MachineFunction>> machine_code(int fd) {
    sys::ProgInfo has = TRY_IN(sys::prog_info(fd), "asking what the program is");
    if (has.jited_prog_len == 0)
        return Unexpected(make_error(Errc::unsupported,
                                     format("program {} has no machine code: the kernel interprets it", has.id),
                                     "sysctl net.core.bpf_jit_enable=1 has programs compiled that are loaded afterwards"));
    const Raw raw = TRY(ask(fd, has));
    std::optional<BtfSource> types;
    if (has.btf_id != 0)
        if (Result<BtfSource> source = BtfSource::of_id(has.btf_id)) types = std::move(*source);
    const std::string own(has.name, strnlen(has.name, sizeof has.name));
    std::vector<MachineFunction> out;
    size_t at = 0;
    for (size_t i = 0; i < std::max<size_t>(raw.sizes.size(), 1); ++i) {
        MachineFunction function;
        const size_t size = raw.sizes.empty() ? raw.code.size() : std::min<size_t>(raw.sizes[i], raw.code.size() - at);
        function.code.assign(raw.code.begin() + static_cast<ptrdiff_t>(at), raw.code.begin() + static_cast<ptrdiff_t>(at + size));
        at += size;
        if (i < raw.starts.size()) function.address = raw.starts[i];
        if (types && !raw.functions.empty())
            if (const auto type = types->btf().type(load<FuncInfo>(raw.functions.data() + i * has.func_info_rec_size).type))
                function.name = type->name;
        if (function.name.empty()) function.name = i == 0 ? own : format("function_{}", i);
        if (types) add_lines(function, raw, has, types->btf());
        out.push_back(std::move(function));
    }
    return out;
}

std::string machine_text(const std::vector<MachineFunction> &functions, bool source) {
    std::string out;
    for (const MachineFunction &function : functions) {
        render::append_line(out, format("{}{}: {} bytes", function.name,
                                        function.address ? format(" at {:#x}", function.address) : std::string(),
                                        function.code.size()));
        size_t next = 0;
        for (size_t at = 0; at < function.code.size();) {
            size_t end = std::min(at + 16, function.code.size());
            if (source) {
                for (; next < function.lines.size() && function.lines[next].offset <= at; ++next)
                    render::append_line(out, format("; {}:{}  {}", function.lines[next].file, function.lines[next].line,
                                                    function.lines[next].text));
                if (next < function.lines.size()) end = std::min<size_t>(end, function.lines[next].offset);
            }
            std::string line = format("{:6x}: ", at);
            for (; at < end; ++at) append(line, " {:02x}", static_cast<unsigned>(function.code[at]));
            render::append_line(out, line);
        }
    }
    return out;
}

} // namespace rawbpf::inline v0::inspect
