// The functions of one file, put together from wherever their names may be:
//
//     the file's own .symtab                    everything, if it wasn't stripped
//       else a separate debug file's .symtab    everything again
//       else .dynsym                            what it exports
//          + .gnu_debugdata                     an xz-compressed ELF file with the rest (Fedora's "mini debug info")
//          + Go's pclntab                       every function of a Go program, for its own tracebacks
//     and always the PLT                        "printf@plt"
//
// Functions of a stripped file that have no name are still told apart, by where .eh_frame says that they begin.
//
// A profile has file offsets, for that is what is left when the place that the loader chose is taken away; symbol tables
// have virtual addresses. The executable segments lead from the one to the other:
//
//     PT_LOAD R E   offset 0x26000  address 0x26000  size 0x155000     address = file offset - 0x26000 + 0x26000
//
// They are taken from the file itself, not from its debug file. Where a debug file is all there is (a report with --symfs, say),
// its segments have no bytes, and GNU objcopy has often set their offsets to 0. What they were follows from how linkers lay
// out what comes before the data: file and memory run in parallel, from the first segment on.
//
// load() maps the file, sorts its functions into 12 bytes each, and unmaps it again; what stays is that table and the open file
// (one descriptor), from which find() reads the one name that it needs.
#include "runtime/symbols/elf_symbols.h"

#include <algorithm>

#include <elf.h>
#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/debug_files.h"
#include "runtime/symbols/demangle.h"
#include "runtime/symbols/function_table.h"
#include "runtime/symbols/go_pclntab.h"
#include "runtime/symbols/long_names.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/symbols/name_strings.h"
#include "runtime/symbols/plt.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/unwind/functions.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr uint64_t kMaxDebugData = 64 << 20; // compressed; the decoder bounds what comes out

struct Named {
    FunctionTable functions;
    NameStrings strings;
};

// Where the bytes of an image are: in an open file, in memory that stays, or in memory that is about to go.
struct Home {
    std::shared_ptr<Fd> fd;
    bool stays = false;

    NameStrings strings(const elf::Elf &elf, const elf::Section &table) const {
        if (table.link >= elf.sections().size()) return {};
        const elf::Section &strings = elf.sections()[table.link];
        return strings_at(strings.offset, elf.contents(strings));
    }
    NameStrings strings_at(uint64_t offset, Bytes bytes) const {
        if (fd) return NameStrings::in_file(fd, offset, bytes.size());
        return stays ? NameStrings::in_memory(bytes) : NameStrings::owned(bytes);
    }
};

const elf::Section *find_table(const elf::Elf &elf, uint32_t type) {
    for (const elf::Section &section : elf.sections())
        if (section.type == type) return &section;
    return nullptr;
}

// The functions of the table of that type; nullopt where there is none, or nothing in it that could be read.
std::optional<Named> read_table(const elf::Elf &elf, uint32_t type, const Home &home) {
    const elf::Section *section = find_table(elf, type);
    if (!section) return std::nullopt;
    Result<FunctionTable> functions = FunctionTable::build(elf, *section);
    if (!functions || functions->size() == 0) return std::nullopt;
    return Named{std::move(*functions), home.strings(elf, *section)};
}

// "memcpy@@GLIBC_2.14": .symtab carries the version in the name, which no demangler knows.
std::string_view without_version(std::string_view name) {
    size_t at = name.find('@');
    return at == 0 || at == std::string_view::npos ? name : name.substr(0, at);
}

} // namespace

struct ElfSymbols::State {
    std::vector<elf::Segment> segments; // executable PT_LOADs
    std::string build_id, source;
    std::vector<Named> tables;
    FunctionTable plt, indirect_plt;
    FunctionTable unnamed; // of .eh_frame, where there is no .symtab
    NameStrings plt_strings;
    std::vector<uint64_t> resolvers;

    // What stands in the file itself; true when that is all there is to know.
    bool read_own(const elf::Elf &elf, const Home &home) {
        uint64_t lowest = UINT64_MAX;
        for (const elf::Segment &segment : elf.segments())
            if (segment.type == PT_LOAD) lowest = std::min(lowest, segment.address);
        for (elf::Segment segment : elf.segments()) {
            if (segment.type != PT_LOAD || !(segment.flags & PF_X)) continue;
            if (segment.file_size == 0) { // a debug file
                if (segment.offset == 0) segment.offset = segment.address - lowest;
                segment.file_size = segment.memory_size;
            }
            segments.push_back(segment);
        }
        build_id = elf.build_id().value_or("");
        PltEntries entries = read_plt(elf);
        plt = std::move(entries.named);
        indirect_plt = std::move(entries.indirect);
        resolvers = std::move(entries.resolvers);
        if (const elf::Section *dynsym = find_table(elf, SHT_DYNSYM)) plt_strings = home.strings(elf, *dynsym);
        return add(read_table(elf, SHT_SYMTAB, home), ".symtab");
    }

    bool add(std::optional<Named> table, std::string_view from) {
        if (!table) return false;
        tables.push_back(std::move(*table));
        if (source.empty()) source = from;
        return true;
    }

    // The little that a stripped file still has.
    void read_remains(const elf::Elf &elf, const Home &home, Decompress decompress) {
        std::vector<FunctionTable::Hit> ranges;
        for (const auto &[start, end] : unwind::function_ranges(elf))
            ranges.push_back({start, static_cast<uint32_t>(std::min<uint64_t>(end - start, INT32_MAX)), 0});
        unnamed = FunctionTable::of(std::move(ranges));
        const elf::Section *packed = decompress ? elf.find_section(".gnu_debugdata") : nullptr;
        if (packed && packed->size <= kMaxDebugData) {
            if (std::optional<std::vector<std::byte>> bytes = decompress(elf.contents(*packed)))
                if (Result<elf::Elf> inner = elf::Elf::parse(*bytes, elf.name() + ": .gnu_debugdata"))
                    add(read_table(*inner, SHT_SYMTAB, Home{}), ".gnu_debugdata");
        }
        add(read_table(elf, SHT_DYNSYM, home), ".dynsym");
        if (std::optional<GoFunctions> go = read_go_pclntab(elf)) {
            elf::Section names;
            names.type = SHT_PROGBITS;
            names.offset = go->names_offset;
            names.size = go->names_size;
            add(Named{std::move(go->functions), home.strings_at(names.offset, elf.contents(names))}, ".gopclntab");
        }
    }

    [[nodiscard]] std::optional<uint64_t> address_of(uint64_t file_offset) const {
        for (const elf::Segment &s : segments)
            if (file_offset >= s.offset && file_offset - s.offset < s.file_size) return s.address + (file_offset - s.offset);
        return std::nullopt;
    }

    [[nodiscard]] std::optional<Name> function_at(uint64_t address) const {
        std::optional<FunctionTable::Hit> best;
        const Named *from = nullptr;
        for (const Named &table : tables) {
            std::optional<FunctionTable::Hit> hit = table.functions.find(address);
            if (!hit || (best && hit->start <= best->start)) continue;
            best = hit;
            from = &table;
        }
        if (!best) return std::nullopt;
        std::string name = from->strings.at(best->name);
        if (name.empty()) return std::nullopt;
        return Name{within_bound(demangle(without_version(name))), address - best->start};
    }

    [[nodiscard]] std::optional<Name> stub_at(uint64_t address) const {
        if (std::optional<FunctionTable::Hit> hit = plt.find(address)) {
            std::string name = plt_strings.at(hit->name);
            if (!name.empty()) return Name{within_bound(demangle(name)) + "@plt", address - hit->start};
        }
        if (std::optional<FunctionTable::Hit> hit = indirect_plt.find(address))
            if (std::optional<Name> resolver = function_at(resolvers[hit->name]))
                return Name{resolver->symbol + "@plt", address - hit->start};
        return std::nullopt;
    }
};

namespace {

// The open, mapped and parsed file; its bytes go when this does.
struct Opened {
    std::shared_ptr<Fd> fd;
    sys::Mapping image;
    elf::Elf elf;
};
Result<Opened> open_elf(Fd fd, const std::string &path) {
    sys::Mapping image = TRY(sys::map_file(fd, path));
    elf::Elf elf = TRY(elf::Elf::parse(image.bytes(), path));
    return Opened{std::make_shared<Fd>(std::move(fd)), std::move(image), std::move(elf)};
}

} // namespace

// Everything about one opened file; `path` and `root` say where its debug file is looked for.
Result<std::shared_ptr<const ElfSymbols::State>> ElfSymbols::read(Fd fd, const std::string &path, const std::string &root,
                                                                  Decompress decompress, DebugFetcher *fetcher) {
    Opened file = TRY(open_elf(std::move(fd), path));
    Home home{file.fd, true};
    auto state = std::make_shared<State>();
    if (state->read_own(file.elf, home)) return state;
    std::optional<Error> unread;
    std::optional<DebugFile> debug = find_debug_file(path, root, state->build_id, debug_link(file.elf), &unread);
    if (!debug && fetcher) debug = fetch_debug_file(*fetcher, state->build_id);
    if (debug) {
        if (Result<elf::Elf> elf = elf::Elf::parse(debug->image.bytes(), debug->path)) {
            Home its_home{std::make_shared<Fd>(std::move(debug->fd)), true};
            if (state->add(read_table(*elf, SHT_SYMTAB, its_home), debug->path)) return state;
        }
    }
    // Its names may be there, they only can't be read now: that isn't the same as a file without names.
    if (unread) return Unexpected(std::move(*unread));
    state->read_remains(file.elf, home, decompress);
    return state;
}

Result<ElfSymbols> ElfSymbols::load(const std::string &path, const std::string &root, Decompress decompress) {
    sys::Because why("open a module to read its symbols");
    return load(TRY(sys::open_under(root, path, O_RDONLY | O_NONBLOCK)), path, root, decompress);
}

Result<ElfSymbols> ElfSymbols::load(Fd file, const std::string &path, const std::string &root, Decompress decompress,
                                    DebugFetcher *fetcher) {
    sys::Because why("read a module's symbols to name its frames");
    ElfSymbols symbols;
    symbols.state_ = TRY(read(std::move(file), path, root, decompress, fetcher));
    return symbols;
}

Result<ElfSymbols> ElfSymbols::load(int pid, const Region &region, const std::string &root, Decompress decompress) {
    sys::Because why("read a module's symbols to name its frames");
    RegionKind kind = region.kind();
    if (kind == RegionKind::anonymous || kind == RegionKind::vdso || kind == RegionKind::vsyscall)
        return fail(Errc::not_found, "the mapping {:#x}-{:#x} ({}) has no file", region.start, region.end, region.path);
    const uint32_t pids[] = {static_cast<uint32_t>(pid)};
    MappedFile mapped = TRY(open_mapped(region, pids, root));
    const std::string path = region.file();
    return load(std::move(mapped.file), path.empty() ? region.path : path, mapped.root, decompress);
}

Result<ElfSymbols> ElfSymbols::parse(Bytes image, std::string_view name) {
    elf::Elf elf = TRY(elf::Elf::parse(image, name));
    auto state = std::make_shared<State>();
    Home home{nullptr, true};
    if (!state->read_own(elf, home)) state->read_remains(elf, home, nullptr);
    ElfSymbols symbols;
    symbols.state_ = std::move(state);
    return symbols;
}

std::optional<uint64_t> ElfSymbols::address_of(uint64_t file_offset) const {
    return state_ ? state_->address_of(file_offset) : std::nullopt;
}

std::optional<uint64_t> ElfSymbols::begin_of(uint64_t file_offset) const {
    const std::optional<uint64_t> address = address_of(file_offset);
    const auto hit = address ? state_->unnamed.find(*address) : std::nullopt; // an address: there is a state
    return hit ? std::optional(file_offset - (*address - hit->start)) : std::nullopt;
}

std::optional<Name> ElfSymbols::find(uint64_t file_offset) const {
    std::optional<uint64_t> address = address_of(file_offset);
    return address ? find_address(*address) : std::nullopt;
}

std::optional<Name> ElfSymbols::find_address(uint64_t address) const {
    if (!state_) return std::nullopt;
    std::optional<Name> name = state_->function_at(address);
    return name ? name : state_->stub_at(address);
}

const std::string &ElfSymbols::build_id() const {
    static const std::string none;
    return state_ ? state_->build_id : none;
}

const std::string &ElfSymbols::source() const {
    static const std::string none;
    return state_ ? state_->source : none;
}

size_t ElfSymbols::size() const {
    size_t count = 0;
    if (state_)
        for (const Named &table : state_->tables) count += table.functions.size();
    return count;
}

size_t ElfSymbols::memory() const {
    if (!state_) return 0;
    size_t bytes = sizeof(State) + state_->plt.memory() + state_->indirect_plt.memory() + state_->unnamed.memory() +
                   state_->resolvers.capacity() * sizeof(uint64_t);
    for (const Named &table : state_->tables) bytes += table.functions.memory() + table.strings.memory();
    return bytes;
}

Result<std::string> read_build_id(const std::string &path, const std::string &root) {
    Fd fd = TRY(sys::open_under(root, path, O_RDONLY | O_NONBLOCK));
    Opened file = TRY(open_elf(std::move(fd), path));
    return file.elf.build_id().value_or("");
}

} // namespace rawbpf::inline v0::symbols
