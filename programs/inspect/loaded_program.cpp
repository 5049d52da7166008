// A loaded program's instructions, from BPF_OBJ_GET_INFO_BY_FD.
//
//      r1 = map[id:7]     the kernel puts the map's id where a descriptor was      -> BPF_MAP_GET_FD_BY_ID, its name
//      call -118784       a helper's address, counted from __bpf_call_base         -> kallsyms
//      call pc+12         functions of the program: func_info names them, in BTF   -> BPF_BTF_GET_FD_BY_ID
//
// This shows what the verifier wrote into the program: bounds checks, inlined lookups. Instructions that exist only inside the
// kernel (nospec) are shown as bytes.
#include "programs/inspect/loaded_program.h"

#include <algorithm>
#include <map>

#include "asm/kinds.h"
#include "programs/inspect/btf_source.h"
#include "runtime/base/fail.h"
#include "runtime/object/spec.h"
#include "runtime/symbols/kallsyms.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::inspect {

namespace {

constexpr uint32_t kMostBytes = 1u << 26;

/// The address that helpers are counted from; 0 where the kernel doesn't say.
uint64_t call_base() {
    Result<std::string> text = sys::read_file("/proc/kallsyms", 256u << 20);
    if (!text) return 0;
    const size_t at = text->find(" __bpf_call_base\n");
    if (at == std::string::npos) return 0;
    const size_t line = text->rfind('\n', at);
    uint64_t address = 0;
    for (size_t i = line == std::string::npos ? 0 : line + 1; i < at && (*text)[i] != ' '; ++i)
        address = address << 4 | static_cast<unsigned>((*text)[i] <= '9' ? (*text)[i] - '0' : (*text)[i] - 'a' + 10);
    return address;
}

/// The kernel's name of a map, made sure to be the only one of it.
std::string map_name(uint32_t id, Unit &unit, std::map<uint32_t, std::string> &known) {
    auto [at, added] = known.emplace(id, format("map_{}", id));
    if (!added) return at->second;
    Result<Fd> fd = sys::fd_by_id(sys::ObjectKind::map, id);
    if (!fd) return at->second;
    Result<sys::MapInfo> info = sys::map_info(fd->get());
    if (!info) return at->second;
    std::string name(info->name, strnlen(info->name, sizeof info->name));
    for (const MapDef &map : unit.maps)
        if (map.name == name) name += format("_{}", id);
    if (!name.empty()) at->second = name;
    MapDef map;
    map.name = at->second;
    map.type = info->type;
    map.key_size = info->key_size;
    map.value_size = info->value_size;
    map.max_entries = info->max_entries;
    map.flags = info->map_flags;
    unit.maps.push_back(std::move(map));
    return at->second;
}

} // namespace

Result<Unit> loaded_program(uint32_t id) {
    const Fd fd = TRY_IN(sys::fd_by_id(sys::ObjectKind::program, id), "program {}", id);
    const sys::ProgInfo sizes = TRY(sys::prog_info(fd.get()));
    if (sizes.xlated_prog_len > kMostBytes || sizes.xlated_prog_len % sizeof(Insn) != 0)
        return fail(Errc::bad_input, "program {}: {} bytes of instructions", id, sizes.xlated_prog_len);
    if (sizes.xlated_prog_len == 0)
        return Unexpected(make_error(Errc::permission, format("program {}: the kernel doesn't show its instructions", id),
                                     sys::refusal_hint({sys::Capability::bpf, sys::Capability::perfmon})));
    std::vector<Insn> insns(sizes.xlated_prog_len / sizeof(Insn));
    const bool func_known =
        sizes.func_info_rec_size >= sizeof(FuncInfo) && sizes.func_info_rec_size <= 256 && sizes.nr_func_info <= 4096;
    const bool line_known =
        sizes.line_info_rec_size >= sizeof(LineInfo) && sizes.line_info_rec_size <= 256 && sizes.nr_line_info <= 1u << 20;
    std::vector<std::byte> functions(func_known ? size_t{sizes.nr_func_info} * sizes.func_info_rec_size : 0);
    std::vector<std::byte> lines(line_known ? size_t{sizes.nr_line_info} * sizes.line_info_rec_size : 0);
    sys::ProgInfo info;
    info.xlated_prog_len = sizes.xlated_prog_len;
    info.xlated_prog_insns = sys::reg(insns.data());
    if (!functions.empty()) {
        info.nr_func_info = sizes.nr_func_info;
        info.func_info_rec_size = sizes.func_info_rec_size;
        info.func_info = sys::reg(functions.data());
    }
    if (!lines.empty()) {
        info.nr_line_info = sizes.nr_line_info;
        info.line_info_rec_size = sizes.line_info_rec_size;
        info.line_info = sys::reg(lines.data());
    }
    (void)TRY_IN(sys::obj_get_info(fd.get(), &info, sizeof info), "program {}: its instructions", id);

    Unit unit;
    unit.name = format("program {}", id);
    unit.license = sizes.gpl_compatible & 1 ? "GPL" : "not compatible with the GPL";
    std::optional<BtfSource> types;
    if (sizes.btf_id != 0)
        if (Result<BtfSource> source = BtfSource::of_id(sizes.btf_id)) types = std::move(*source);

    std::vector<std::pair<uint32_t, std::string>> starts;
    for (size_t i = 0; !functions.empty() && i < sizes.nr_func_info; ++i) {
        const FuncInfo one = load<FuncInfo>(functions.data() + i * sizes.func_info_rec_size);
        std::string name;
        if (types)
            if (auto type = types->btf().type(one.type)) name = type->name;
        if (one.insn < insns.size() && (starts.empty() || one.insn > starts.back().first)) starts.emplace_back(one.insn, name);
    }
    if (starts.empty() || starts[0].first != 0) starts.insert(starts.begin(), {0, std::string()});
    if (starts[0].second.empty()) starts[0].second = std::string(sizes.name, strnlen(sizes.name, sizeof sizes.name));
    std::map<std::string, int> taken;
    for (auto &[insn, name] : starts) {
        if (name.empty()) name = format("function_{}", insn);
        if (taken[name]++ > 0) name += format("_{}", insn);
    }

    uint64_t base = 0;
    std::map<uint64_t, std::string> helper_names;
    {
        std::vector<uint64_t> addresses;
        for (size_t i = 0; i < insns.size(); i += is_wide(insns[i]) ? 2 : 1)
            if (insns[i].code == 0x85 && (insns[i].src == 0 || insns[i].src == 2) && insns[i].imm != 0) {
                if (base == 0) base = call_base();
                if (base == 0) break;
                addresses.push_back(base + static_cast<uint64_t>(static_cast<int64_t>(insns[i].imm)));
            }
        if (!addresses.empty())
            if (auto names = symbols::name_kernel_addresses(std::move(addresses)))
                for (symbols::KernelName &name : *names)
                    if (name.offset == 0 && !name.symbol.empty()) helper_names.emplace(name.address, name.symbol);
    }

    std::map<uint32_t, std::string> maps;
    size_t line_at = 0;
    for (size_t n = 0; n < starts.size(); ++n) {
        const uint32_t from = starts[n].first;
        const uint32_t to = n + 1 < starts.size() ? starts[n + 1].first : static_cast<uint32_t>(insns.size());
        Function function;
        function.name = starts[n].second;
        if (n == 0) function.section = program_type_word(sizes.type);
        function.insns.assign(insns.begin() + from, insns.begin() + to);
        for (uint32_t i = from; i < to;) {
            Insn &insn = function.insns[i - from];
            Ref ref;
            ref.insn = i - from;
            if (is_wide(insn) && i + 1 < to && (insn.src == 1 || insn.src == 2)) {
                ref.kind = insn.src == 1 ? RefKind::map : RefKind::map_value;
                ref.symbol = map_name(static_cast<uint32_t>(insn.imm), unit, maps);
                if (insn.src == 2) ref.addend = static_cast<uint32_t>(function.insns[i + 1 - from].imm);
            } else if (insn.code == 0x85 && insn.src == 1) {
                if (insn.off != 0) { // compiled: the function's number is in imm, the distance in off
                    insn.imm = insn.off;
                    insn.off = 0;
                }
                const int64_t target = int64_t{i} + 1 + insn.imm;
                for (auto &[start, name] : starts)
                    if (int64_t{start} == target) ref.symbol = name;
                ref.kind = RefKind::call;
            } else if (insn.code == 0x85 && insn.imm != 0) {
                auto at = helper_names.find(base + static_cast<uint64_t>(static_cast<int64_t>(insn.imm)));
                if (at != helper_names.end()) ref.symbol = at->second;
                ref.kind = RefKind::kfunc;
            }
            if (!ref.symbol.empty()) function.refs.push_back(std::move(ref));
            i += is_wide(insn) && i + 1 < to ? 2 : 1;
        }
        for (; !lines.empty() && types && line_at < sizes.nr_line_info; ++line_at) {
            const LineInfo one = load<LineInfo>(lines.data() + line_at * sizes.line_info_rec_size);
            if (one.insn >= to) break;
            if (one.insn < from) continue;
            SourceLine line;
            line.insn = one.insn - from;
            if (auto text = types->btf().string(one.file)) line.file = *text;
            if (auto text = types->btf().string(one.line)) line.text = *text;
            line.line = one.number_column >> 10;
            line.column = one.number_column & 1023;
            function.lines.push_back(std::move(line));
        }
        unit.functions.push_back(std::move(function));
    }
    return unit;
}

} // namespace rawbpf::inline v0::inspect
