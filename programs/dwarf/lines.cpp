// From an address to lines and inlined functions. Debug info is a forest:
//
//     unit draw.cpp   [0x1000, 0x1800)                          its line table: 0x1184 -> shapes.h:12
//       subprogram area   [0x1170, 0x11c0)
//         lexical block   [0x1178, 0x11a0)
//           inlined square   [0x1180, 0x1190)   called at draw.cpp:40      0x1184 is "square (shapes.h:12)"
//             inlined times  [0x1188, 0x118c)                                  inlined into "area (draw.cpp:40)"
//
// The line of an address is that of the innermost function there; each function further out is at the line of the call that was
// replaced by the code of the one before.
//
// libdw reads it: DWARF 2 to 5, compressed sections, .dwo files, dwz's shared file. What is done here:
// - which unit: by the units' own ranges, in an index of ours. .debug_aranges, which libdw asks, is left out by clang and rustc.
// - which function: an index for each unit that was asked about, made at the first question. libdw's way, from the unit's first
//   entry on each time, takes milliseconds an address in a large unit.
// - names: an inlined function's entry refers to an abstract one, which refers to a declaration, which may be in another unit or
// in
//   dwz's file; linkage names are demangled as symbols are, so that they read alike.
//
// A linker that drops a function leaves its entry, with an address of 0 or 1 or -1, and a range from there may cover real code.
// So the range that begins last wins, and no range may begin below the first page.
//
// The file is mapped where nobody but root can write it. Otherwise its owner might truncate it while we look, which would end us
// with a SIGBUS, so then its sections are read.
#include "programs/dwarf/lines.h"

#include <algorithm>

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"
#include "runtime/base/stable_sort.h"
#include "runtime/symbols/demangle.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::dwarf {
namespace {

using processes::SourceFrame;

constexpr uint64_t kLowest = 4096;          // what begins below was dropped by the linker
constexpr int kMostLooked = 32;             // ranges around an address
constexpr size_t kDeepest = 256;            // entries in entries
constexpr size_t kMostEntries = 50'000'000; // of a unit
constexpr size_t kMostInlined = 128;        // functions at one address
constexpr uint64_t kMostRead = uint64_t{1} << 30;

struct Range {
    uint64_t begin, end;
    uint32_t what; // unit or function
};

// Sorted ranges that may overlap, and which of them are at an address: those that begin last come first.
class Ranges {
  public:
    void add(uint64_t begin, uint64_t end, uint32_t what) {
        if (begin >= kLowest && begin < end) ranges_.push_back({begin, end, what});
    }
    void sort() {
        stable_sort(ranges_, [](const Range &a, const Range &b) { return a.begin < b.begin; });
    }
    /// Until `take` returns true.
    template <class Take> void at(uint64_t address, Take &&take) const {
        auto range = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](uint64_t wanted, const Range &r) { return wanted < r.begin; });
        for (int looked = 0; range != ranges_.begin() && looked < kMostLooked; ++looked) {
            --range;
            if (address < range->end && take(range->what)) return;
        }
    }

  private:
    std::vector<Range> ranges_;
};

void add_ranges(Dwarf_Die &die, uint32_t what, Ranges &to) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(&die, next, &base, &begin, &end)) > 0;) to.add(begin, end, what);
}

std::string text_of(Dwarf_Die &die, unsigned name) {
    Dwarf_Attribute attribute;
    const char *text = dwarf_attr_integrate(&die, name, &attribute) ? dwarf_formstring(&attribute) : nullptr;
    return text ? text : "";
}

std::string function_name(Dwarf_Die &die) {
    for (unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
        if (std::string name = text_of(die, attribute); !name.empty()) return symbols::demangle(name);
    return text_of(die, DW_AT_name);
}

uint64_t number_of(Dwarf_Die &die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_attr(&die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

// A unit's entry as it stands in the file, and where its functions are: the same, or in a .dwo file.
struct Unit {
    Dwarf_Die head{}, body{};
    bool indexed = false;
    Ranges ranges;
    std::vector<Dwarf_Die> functions;
};

class Lines final : public processes::ModuleLines {
  public:
    Lines(Fd file, Elf *elf, Dwarf *dwarf) : file_(std::move(file)), elf_(elf), dwarf_(dwarf) {}
    Lines(const Lines &) = delete;
    Lines &operator=(const Lines &) = delete;
    ~Lines() override {
        dwarf_end(dwarf_);
        if (elf_) elf_end(elf_);
        if (shared_) dwarf_end(shared_);
    }
    void use_shared(Fd file, Dwarf *shared) {
        shared_file_ = std::move(file);
        shared_ = shared;
        dwarf_setalt(dwarf_, shared);
    }
    // How many units there are, and how many of those have their functions in a file that isn't here.
    struct Counted {
        size_t units = 0, without_body = 0;
    };
    Counted index_units();

    std::vector<SourceFrame> find(uint64_t address) override;

  private:
    void index_functions(Unit &unit);
    bool collect_inlined(Dwarf_Die &scope, uint64_t address, size_t depth, std::vector<Dwarf_Die> &inlined);
    SourceFrame line_at(Unit &unit, uint64_t address);
    void place_call(Unit &unit, Dwarf_Die &call, SourceFrame &into);
    static void set_file(Unit &unit, const char *name, SourceFrame &into);

    Fd file_, shared_file_;
    Elf *elf_;
    Dwarf *dwarf_, *shared_ = nullptr;
    std::vector<Unit> units_;
    Ranges ranges_;
};

Lines::Counted Lines::index_units() {
    Counted counted;
    Dwarf_CU *unit = nullptr;
    Dwarf_Half version = 0;
    uint8_t type = 0;
    Dwarf_Die head, body;
    while (dwarf_get_units(dwarf_, unit, &unit, &version, &type, &head, &body) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
        ++counted.units;
        Unit added;
        added.head = added.body = head;
        if (type == DW_UT_skeleton) {
            // libdw says by an empty entry that the .dwo file isn't there.
            if (body.addr)
                added.body = body;
            else
                ++counted.without_body;
        }
        add_ranges(head, static_cast<uint32_t>(units_.size()), ranges_);
        units_.push_back(std::move(added));
    }
    ranges_.sort();
    return counted;
}

// Once through all entries that a function may be in: namespaces, types, and functions (nested ones, in C and Fortran).
void Lines::index_functions(Unit &unit) {
    unit.indexed = true;
    std::vector<Dwarf_Die> path(1);
    if (dwarf_child(&unit.body, &path[0]) != 0) return;
    for (size_t seen = 0; !path.empty() && seen < kMostEntries; ++seen) {
        Dwarf_Die at = path.back();
        Dwarf_Die next;
        if (dwarf_siblingof(&at, &next) == 0)
            path.back() = next;
        else
            path.pop_back();
        bool enter = false;
        switch (dwarf_tag(&at)) {
        case DW_TAG_subprogram:
            add_ranges(at, static_cast<uint32_t>(unit.functions.size()), unit.ranges);
            unit.functions.push_back(at);
            enter = true;
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_lexical_block: enter = true; break;
        default: break;
        }
        if (enter && path.size() < kDeepest && dwarf_child(&at, &next) == 0) path.push_back(next);
    }
    unit.ranges.sort();
}

// The inlined functions at the address inside `scope`, outermost first. True: there was one, so that no other has to be tried.
bool Lines::collect_inlined(Dwarf_Die &scope, uint64_t address, size_t depth, std::vector<Dwarf_Die> &inlined) {
    Dwarf_Die at;
    if (depth > kDeepest || inlined.size() >= kMostInlined || dwarf_child(&scope, &at) != 0) return false;
    do {
        const int tag = dwarf_tag(&at);
        if (tag == DW_TAG_inlined_subroutine) {
            if (dwarf_haspc(&at, address) != 1) continue;
            inlined.push_back(at);
            collect_inlined(at, address, depth + 1, inlined);
            return true;
        }
        if (tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block) continue;
        // A block without a range of its own: any of its functions may be it.
        const bool ranged = dwarf_hasattr(&at, DW_AT_low_pc) != 0 || dwarf_hasattr(&at, DW_AT_ranges) != 0;
        if (ranged && dwarf_haspc(&at, address) != 1) continue;
        if (collect_inlined(at, address, depth + 1, inlined)) return true;
    } while (dwarf_siblingof(&at, &at) == 0);
    return false;
}

void Lines::set_file(Unit &unit, const char *name, SourceFrame &into) {
    if (!name || *name == 0 || std::string_view(name) == "???") return;
    into.file.clear();
    if (*name != '/') {
        into.file = text_of(unit.head, DW_AT_comp_dir);
        if (!into.file.empty()) into.file += '/';
    }
    into.file += name;
}

SourceFrame Lines::line_at(Unit &unit, uint64_t address) {
    SourceFrame out;
    Dwarf_Line *line = dwarf_getsrc_die(&unit.head, address);
    if (!line) return out;
    int number = 0, column = 0;
    if (dwarf_lineno(line, &number) == 0 && number > 0) out.line = static_cast<uint32_t>(number);
    if (dwarf_linecol(line, &column) == 0 && column > 0) out.column = static_cast<uint32_t>(column);
    set_file(unit, dwarf_linesrc(line, nullptr, nullptr), out);
    return out;
}

void Lines::place_call(Unit &unit, Dwarf_Die &call, SourceFrame &into) {
    into.line = static_cast<uint32_t>(std::min<uint64_t>(number_of(call, DW_AT_call_line), UINT32_MAX));
    into.column = static_cast<uint32_t>(std::min<uint64_t>(number_of(call, DW_AT_call_column), UINT32_MAX));
    Dwarf_Files *files = nullptr;
    size_t count = 0;
    if (dwarf_getsrcfiles(&unit.head, &files, &count) != 0) return;
    const uint64_t index = number_of(call, DW_AT_call_file);
    if (index < count) set_file(unit, dwarf_filesrc(files, index, nullptr, nullptr), into);
}

std::vector<SourceFrame> Lines::find(uint64_t address) {
    Unit *unit = nullptr;
    Dwarf_Die function{};
    ranges_.at(address, [&](uint32_t index) {
        Unit &candidate = units_[index];
        if (!unit) unit = &candidate; // its line table may know the address where no function is: assembly
        if (!candidate.indexed) index_functions(candidate);
        candidate.ranges.at(address, [&](uint32_t which) {
            function = candidate.functions[which];
            unit = &candidate;
            return true;
        });
        return function.addr != nullptr;
    });
    if (!unit) return {};
    std::vector<SourceFrame> out;
    SourceFrame here = line_at(*unit, address);
    if (!function.addr) {
        if (!here.file.empty()) out.push_back(std::move(here));
        return out;
    }
    std::vector<Dwarf_Die> inlined;
    collect_inlined(function, address, 0, inlined);
    for (auto call = inlined.rbegin(); call != inlined.rend(); ++call) {
        here.function = function_name(*call);
        out.push_back(std::move(here));
        here = {};
        place_call(*unit, *call, here);
    }
    here.function = function_name(function);
    Dwarf_Addr entry = 0;
    if (dwarf_entrypc(&function, &entry) == 0 && entry <= address) here.offset = address - entry;
    out.push_back(std::move(here));
    return out;
}

// dwz moves what several files share into one, and each names it: a path, from the file's own folder on, and its build-id. libdw
// looks for it in our file system; in another root it is looked for here. Nothing found: names that stand there stay empty.
void find_shared(Dwarf *dwarf, Lines &lines, const std::string &path, const std::string &root) {
    const char *name = nullptr;
    const void *id = nullptr;
    const ssize_t id_size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
    if (id_size <= 0 || root.empty() || root == "/") return;
    const std::string wanted = hex_text(std::string_view(static_cast<const char *>(id), static_cast<size_t>(id_size)));
    std::string by_name = name;
    if (*name != '/') by_name = path.substr(0, path.rfind('/') + 1) + name;
    const std::string by_id = "/usr/lib/debug/.build-id/" + wanted.substr(0, 2) + "/" + wanted.substr(2) + ".debug";
    for (const std::string &candidate : {by_id, by_name}) {
        Result<Fd> file = sys::open_under(root, candidate, O_RDONLY | O_NONBLOCK);
        if (!file) continue;
        Dwarf *shared = dwarf_begin(file->get(), DWARF_C_READ);
        if (!shared) continue;
        const void *its_id = nullptr;
        const ssize_t its_size = dwelf_elf_gnu_build_id(dwarf_getelf(shared), &its_id);
        if (its_size == id_size && std::equal(static_cast<const uint8_t *>(id), static_cast<const uint8_t *>(id) + id_size,
                                              static_cast<const uint8_t *>(its_id))) {
            lines.use_shared(std::move(*file), shared);
            return;
        }
        dwarf_end(shared);
    }
}

} // namespace

Result<std::unique_ptr<processes::ModuleLines>> open_lines(Fd file, const std::string &path, const std::string &root,
                                                           const std::function<void(std::string)> &complain) {
    elf_version(EV_CURRENT);
    const struct stat st = TRY(sys::stat_fd(file.get()));
    const bool steady = st.st_uid == 0 && (st.st_mode & 022) == 0;
    if (!steady && static_cast<uint64_t>(st.st_size) > kMostRead)
        return fail(Errc::bad_input, "{}: {} MB of debug info that others than root can change, so that it can't be mapped", path,
                    st.st_size >> 20);
    Elf *elf = elf_begin(file.get(), steady ? ELF_C_READ_MMAP : ELF_C_READ, nullptr);
    Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, nullptr) : nullptr;
    if (!dwarf) {
        const char *why = elf ? dwarf_errmsg(-1) : elf_errmsg(-1);
        if (elf) elf_end(elf);
        return fail(Errc::bad_input, "{}: its debug info can't be read: {}", path, why ? why : "unknown error");
    }
    auto lines = std::make_unique<Lines>(std::move(file), elf, dwarf);
    find_shared(dwarf, *lines, path, root);
    const Lines::Counted counted = lines->index_units();
    if (counted.units == 0) return fail(Errc::bad_input, "{}: its debug info has no units", path);
    if (counted.without_body > 0)
        complain(
            format("{}: {} of {} units have their debug info in .dwo files that aren't there: no inlined functions of theirs",
                   path, counted.without_body, counted.units));
    return lines;
}

} // namespace rawbpf::inline v0::dwarf
