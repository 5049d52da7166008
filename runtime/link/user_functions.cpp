// From "libc:malloc" to a file and an offset in it, which is all that a uprobe needs.
//
//      name          -> path     LD_LIBRARY_PATH, the linker's folders; PATH; what a process has mapped
//      symbol        -> address  .dynsym, .symtab, or the .symtab of the debug file by build-id
//      address       -> offset   by the PT_LOAD segment that it lies in
//
//      Elf64_Sym { name, STT_FUNC, value 0x97b40 }    PT_LOAD R E offset 0x26000 address 0x26000   ->   file offset 0x97b40
//
// Versions ("memcpy@GLIBC_2.14") are beside .dynsym: .gnu.version has 16 bits for each symbol, an index into .gnu.version_d;
// bit 15 marks versions that aren't the default.
#include "runtime/link/user_functions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <map>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/elf/elf.h"
#include "runtime/elf/go_table.h"
#include "runtime/link/function_names.h"
#include "runtime/link/names.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/symbols/maps.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {
namespace {

bool looks_like_library(const std::string &name) { return name.ends_with(".so") || name.find(".so.") != std::string::npos; }

// "libc" is called libc.so.6 in a process or a folder: the name, a dot or dash, and ".so" behind it.
bool is_library_called(std::string_view file, std::string_view name) {
    if (file == name) return true;
    if (!file.starts_with(name)) return false;
    std::string_view rest = file.substr(name.size());
    return rest.starts_with(".so") || (rest.starts_with('-') && rest.find(".so") != std::string_view::npos);
}

std::vector<std::string> folders(const char *variable, std::initializer_list<std::string> usual) {
    std::vector<std::string> out;
    if (variable)
        for (std::string_view rest = variable; !rest.empty();) {
            size_t end = rest.find(':');
            if (end != 0) out.emplace_back(rest.substr(0, end));
            rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        }
    for (const std::string &folder : usual) out.emplace_back(folder);
    return out;
}

std::vector<std::string> library_folders() {
    return folders(std::getenv("LD_LIBRARY_PATH"), {format("/lib/{}", kHost.triplet), format("/usr/lib/{}", kHost.triplet),
                                                    "/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"});
}

std::string joined(const std::vector<std::string> &parts) {
    std::string out;
    for (const std::string &part : parts) append(out, "{}{}", out.empty() ? "" : ":", part);
    return out;
}

Result<std::string> in_process(const std::string &name, int pid) {
    const std::string root = format("/proc/{}/root", pid);
    // A relative path is where we are, which need not be in the process's root.
    if (name.find('/') != std::string::npos) return name.starts_with("/proc/") || !name.starts_with('/') ? name : root + name;
    symbols::ProcessMaps maps = TRY(symbols::read_maps(pid));
    for (const symbols::Region &region : maps.regions) {
        std::string file = region.file();
        std::string_view base = std::string_view(file).substr(file.rfind('/') + 1);
        if (file.empty() || !is_library_called(base, name)) continue;
        const uint32_t pids[] = {static_cast<uint32_t>(pid)};
        return std::move(TRY(symbols::open_mapped(region, pids)).path);
    }
    return fail(Errc::not_found, "process {} has mapped no file called {}", pid, name);
}

} // namespace

Result<std::string> find_binary(const std::string &name, int pid) {
    if (name.empty()) return fail(Errc::invalid_argument, "give a program or library");
    if (name.find("!/") != std::string::npos)
        return fail(Errc::unsupported, "{}: rawbpf can't read libraries inside of archives (APK files)", name);
    if (pid > 0) return in_process(name, pid);
    if (name.find('/') != std::string::npos) {
        TRY(sys::stat_file(name));
        return name;
    }
    std::vector<std::string> looked;
    const bool library = looks_like_library(name) || name.starts_with("lib");
    if (library) {
        looked = library_folders();
        for (const std::string &folder : looked) {
            if (sys::exists(folder + "/" + name)) return folder + "/" + name;
            if (looks_like_library(name)) continue;
            std::string best; // of libc.so.6 and libc.so (a linker script, often) the longer name is the library
            for (const std::string &file : sys::list_directory(folder).value_or(std::vector<std::string>{}))
                if (file.starts_with(name + ".so.") &&
                    (best.empty() || file.size() < best.size() || (file.size() == best.size() && file > best)))
                    best = file;
            if (best.empty() && sys::exists(folder + "/" + name + ".so")) best = name + ".so";
            if (!best.empty()) return folder + "/" + best;
        }
    }
    for (const std::string &folder : folders(std::getenv("PATH"), {"/usr/bin", "/usr/sbin", "/bin", "/sbin"})) {
        if (library) break;
        looked.push_back(folder);
        if (sys::exists(folder + "/" + name)) return folder + "/" + name;
    }
    return Unexpected(make_error(Errc::not_found, format("{} {}: not found", library ? "library" : "program", name),
                                 format("rawbpf looked in {}; for another place, give a path with a slash", joined(looked))));
}

struct UserFunctions::State {
    std::string path;
    sys::Mapping image;
    elf::Elf elf;
    std::optional<symbols::DebugFile> debug;
    std::optional<elf::Elf> debug_elf;
    bool go = false;
    std::optional<elf::GoTable> go_table; ///< where there are no symbols
};

namespace {

// Visits every function with a name and an address: see(name, symbol, versioned name or empty).
template <class See> Result<void> each_function(const elf::Elf &elf, const elf::Section &table, See see) {
    elf::SymbolTable symbols = TRY(elf.symbol_table(table));
    for (size_t i = 0; i < symbols.size(); ++i) {
        elf::Symbol symbol = symbols.at(i);
        if ((symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC) || symbol.section == SHN_UNDEF || symbol.value == 0)
            continue;
        Result<std::string_view> name = symbols.name(i);
        if (name && !name->empty()) see(*name, symbol, i);
    }
    return {};
}

// Index in .gnu.version_d -> name.
std::map<uint16_t, std::string> version_names(const elf::Elf &elf) {
    std::map<uint16_t, std::string> out;
    const elf::Section *table = nullptr;
    for (const elf::Section &section : elf.sections())
        if (section.type == SHT_GNU_verdef) table = &section;
    if (!table || table->link >= elf.sections().size() || !elf.is_64() || elf.big_endian()) return out;
    Bytes bytes = elf.contents(*table), strings = elf.contents(elf.sections()[table->link]);
    size_t at = 0;
    for (size_t n = 0; n < 4096 && at + sizeof(Elf64_Verdef) <= bytes.size(); ++n) {
        auto def = load<Elf64_Verdef>(bytes.data() + at);
        size_t aux_at = at + def.vd_aux;
        if (aux_at + sizeof(Elf64_Verdaux) <= bytes.size()) {
            auto aux = load<Elf64_Verdaux>(bytes.data() + aux_at);
            if (aux.vda_name < strings.size()) {
                const char *start = reinterpret_cast<const char *>(strings.data()) + aux.vda_name;
                out[def.vd_ndx & 0x7fff] = std::string(start, strnlen(start, strings.size() - aux.vda_name));
            }
        }
        if (def.vd_next == 0) break;
        at += def.vd_next;
    }
    return out;
}

const elf::Section *section_of_type(const elf::Elf &elf, uint32_t type) {
    for (const elf::Section &section : elf.sections())
        if (section.type == type) return &section;
    return nullptr;
}

// A symbol's own version, "" without one.
class Versions {
  public:
    explicit Versions(const elf::Elf &elf) : names_(version_names(elf)) {
        if (const elf::Section *section = section_of_type(elf, SHT_GNU_versym); section && !elf.big_endian())
            numbers_ = elf.contents(*section);
    }
    [[nodiscard]] std::string_view of(size_t symbol) const {
        if (symbol * 2 + 2 > numbers_.size()) return {};
        auto at = names_.find(load<uint16_t>(numbers_.data() + symbol * 2) & 0x7fff);
        return at == names_.end() ? std::string_view() : std::string_view(at->second);
    }
    [[nodiscard]] bool is_default(size_t symbol) const {
        return symbol * 2 + 2 > numbers_.size() || !(load<uint16_t>(numbers_.data() + symbol * 2) & 0x8000);
    }

  private:
    std::map<uint16_t, std::string> names_;
    Bytes numbers_;
};

} // namespace

Result<UserFunctions> UserFunctions::open(const std::string &path) {
    sys::Mapping image = TRY(sys::map_file(path));
    elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), path));
    auto state = std::make_shared<State>(State{path, std::move(image), std::move(elf), {}, {}, false, {}});
    state->go = state->elf.find_section(".note.go.buildid") || state->elf.find_section(".go.buildinfo") ||
                state->elf.find_section(".gopclntab");
    if (!section_of_type(state->elf, SHT_SYMTAB)) {
        std::string root = path.starts_with("/proc/") ? path.substr(0, std::min(path.find("/root/"), path.size())) + "/root" : "";
        state->debug = symbols::find_debug_file(path, root, state->elf.build_id().value_or(""), symbols::debug_link(state->elf));
        if (state->debug)
            if (Result<elf::Elf> parsed = elf::Elf::parse(state->debug->image.bytes(), state->debug->path))
                state->debug_elf = std::move(*parsed);
    }
    if (state->go && !section_of_type(state->elf, SHT_SYMTAB) && !state->debug_elf)
        state->go_table = elf::read_go_table(state->elf);
    UserFunctions out;
    out.state_ = std::move(state);
    return out;
}

bool UserFunctions::is_go() const { return state_->go; }
const std::string &UserFunctions::path() const { return state_->path; }
const elf::Elf &UserFunctions::elf() const { return state_->elf; }
Bytes UserFunctions::image() const { return state_->image.bytes(); }

namespace {

// Every table that there is: the file's dynamic one first, since what others link against is what people mean.
template <class See> Result<void> each_table(const UserFunctions::State &state, See see) {
    for (const elf::Section &section : state.elf.sections())
        if (section.type == SHT_DYNSYM) TRY(see(state.elf, section, true));
    for (const elf::Section &section : state.elf.sections())
        if (section.type == SHT_SYMTAB) TRY(see(state.elf, section, false));
    if (state.debug_elf)
        for (const elf::Section &section : state.debug_elf->sections())
            if (section.type == SHT_SYMTAB) TRY(see(*state.debug_elf, section, false));
    return {};
}

// see(name, symbol, index, whether of .dynsym) for the functions of all of them, and of a stripped Go program for those that its
// runtime keeps names of.
template <class See> Result<void> each_named(const UserFunctions::State &state, See see) {
    TRY(each_table(state, [&](const elf::Elf &elf, const elf::Section &table, bool dynamic) -> Result<void> {
        return each_function(elf, table, [&](std::string_view name, const elf::Symbol &symbol, size_t index) {
            see(name, symbol, index, dynamic);
        });
    }));
    if (!state.go_table) return {};
    const elf::GoTable &table = *state.go_table;
    const std::string_view names(reinterpret_cast<const char *>(table.names.data()), table.names.size());
    for (const elf::GoFunction &function : table.functions) {
        if (function.name >= names.size()) continue;
        const std::string_view rest = names.substr(function.name);
        elf::Symbol symbol;
        symbol.name = rest.substr(0, rest.find('\0'));
        symbol.value = function.start;
        symbol.size = function.end > function.start ? function.end - function.start : 0;
        symbol.type = STT_FUNC;
        if (!symbol.name.empty()) see(symbol.name, symbol, 0, false);
    }
    return {};
}

// .symtab of a linked library writes versions into the names: "memcpy@@GLIBC_2.14", "memcpy@GLIBC_2.2.5".
struct Split {
    std::string_view name, version;
};
Split split_version(std::string_view name) {
    size_t at = name.find('@');
    if (at == std::string_view::npos || at == 0) return {name, {}};
    std::string_view version = name.substr(at + 1);
    if (version.starts_with('@')) version.remove_prefix(1);
    return {name.substr(0, at), version};
}

} // namespace

Result<UserFunction> UserFunctions::find(const std::string &wanted) const {
    Split want = split_version(wanted);
    struct Candidate {
        UserFunction function;
        int rank;
    };
    std::vector<Candidate> found;
    NearestNames near(want.name);
    Versions versions(state_->elf);
    size_t seen = 0;
    bool indirect = false, readable = false;
    const auto look = [&]() -> Result<void> {
        return each_named(*state_, [&](std::string_view name, const elf::Symbol &symbol, size_t index, bool dynamic) {
            ++seen;
            Split have = split_version(name);
            std::optional<FunctionNames> names;
            if (readable) {
                names.emplace(have.name);
                if (!names->is(want.name)) {
                    near.see(names->bare);
                    return;
                }
            } else if (have.name != want.name) {
                return;
            }
            std::string_view version = dynamic ? versions.of(index) : have.version;
            if (!want.version.empty() && want.version != version) return;
            if (symbol.type == STT_GNU_IFUNC) {
                indirect = true;
                return;
            }
            std::optional<uint64_t> offset = state_->elf.file_offset(symbol.value);
            if (!offset) return;
            int rank = symbol.binding == STB_GLOBAL || symbol.binding == STB_GNU_UNIQUE ? 2 : symbol.binding == STB_WEAK ? 1 : 0;
            if (dynamic) rank += 10 + (versions.is_default(index) ? 10 : 0);
            if (!names) names.emplace(have.name);
            if (returns_to_nobody(have.name)) rank -= 5; // the part that is hardly ever run isn't what is meant
            const std::string shown = names->symbol == names->readable ? std::string(name) : names->shown();
            found.push_back({{shown, *offset, symbol.size, std::string(have.name), names->suffix}, rank});
        });
    };
    TRY(look());
    if (found.empty() && !indirect) {
        readable = true;
        seen = 0;
        TRY(look());
    }
    // Where the version that programs get is chosen at run time, an old one of the same name isn't what is meant.
    if (found.empty() || (indirect && want.version.empty())) {
        Error error = make_error(Errc::not_found, format("{}: no function {}", state_->path, wanted), near.hint());
        if (indirect) {
            error.context = format("{}: {} has variants for different CPUs, of which the program chooses one at run time (IFUNC)",
                                   state_->path, wanted);
            error.hint = "probe the variants: a pattern such as *" + std::string(want.name) + "_* shows them";
        }
        if (seen == 0) error.hint = "the file is stripped; give an offset: FILE:0x1234";
        return Unexpected(std::move(error));
    }
    stable_sort(found, [](const Candidate &a, const Candidate &b) { return a.rank > b.rank; });
    for (const Candidate &other : found)
        if (other.rank == found.front().rank && other.function.offset != found.front().function.offset)
            return Unexpected(make_error(Errc::invalid_argument,
                                         format("{}: several functions are called {}, at {:#x} and {:#x} among others",
                                                state_->path, wanted, found.front().function.offset, other.function.offset),
                                         readable ? format("give one with its parameters, or by its symbol or offset: {}, {}",
                                                           found.front().function.symbol, other.function.symbol)
                                                  : "give one by its offset: FILE:0x1234"));
    return found.front().function;
}

Result<std::vector<UserFunction>> UserFunctions::match(const std::string &pattern) const {
    std::vector<UserFunction> out;
    TRY(each_named(*state_, [&](std::string_view name, const elf::Symbol &symbol, size_t, bool) {
        std::string_view plain = split_version(name).name;
        if (symbol.type == STT_GNU_IFUNC) return; // its code is what chooses, and runs once
        if (!could_match(pattern, plain)) return;
        const FunctionNames names(plain);
        if (!names.match(pattern)) return;
        if (std::optional<uint64_t> offset = state_->elf.file_offset(symbol.value))
            out.push_back({names.shown(), *offset, symbol.size, std::string(plain), names.suffix});
    }));
    if (out.empty()) {
        NearestNames near(pattern);
        TRY(each_named(*state_, [&](std::string_view name, const elf::Symbol &symbol, size_t, bool) {
            if (symbol.type != STT_GNU_IFUNC) near.see(FunctionNames(split_version(name).name).bare);
        }));
        return Unexpected(
            make_error(Errc::not_found, format("{}: no function matches \"{}\"", state_->path, pattern), near.hint()));
    }
    // Aliases share their place: the kernel would run the program twice.
    stable_sort(out, [](const UserFunction &a, const UserFunction &b) { return a.offset < b.offset; });
    out.erase(
        std::unique(out.begin(), out.end(), [](const UserFunction &a, const UserFunction &b) { return a.offset == b.offset; }),
        out.end());
    return out;
}

bool returns_to_nobody(std::string_view name) {
    return name == "_start" || name == "_init" || name == "_fini" || name.ends_with(".cold") || name.ends_with("@plt") ||
           name.find(".cold.") != std::string_view::npos;
}

} // namespace rawbpf::inline v0
