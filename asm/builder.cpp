// The unit: maps, globals, and the names of functions. code.cpp has the contents of each function.
//
// Nothing here stops at the first mistake. Errors are collected, building goes on with the best guess, and finish() returns
// all of them, so that one compile-and-run round shows every mistake.
#include "asm/builder.h"

#include <cstring>

#include "asm/map_types.h"

namespace rawbpf::inline v0 {

Builder::Builder(std::string name, std::string license) {
    unit_.name = std::move(name);
    unit_.license = std::move(license);
}

Builder::~Builder() = default;

void Builder::complain(Where where, std::string message) {
    Diagnostic diagnostic;
    diagnostic.line = static_cast<int>(where.line());
    diagnostic.message = std::move(message);
    diagnostic.file = where.file_name();
    problems_.push_back(std::move(diagnostic));
}

void Builder::check_name(std::string_view what, const std::string &name, Where where) {
    const std::string quoted = std::string(what) + " `" + name + "`";
    if (name.empty()) return complain(where, "a " + std::string(what) + " needs a name");
    for (char c : name)
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '.')
            return complain(where, quoted + ": the kernel takes only letters, digits, `_` and `.` in names");
    for (const MapDef &map : unit_.maps)
        if (map.name == name) return complain(where, quoted + ": there is a map with this name already");
    for (const auto &code : codes_)
        if (code->name() == name) return complain(where, quoted + ": there is a function with this name already");
}

Code &Builder::program(std::string section, std::string name, Where where) {
    check_name("program", name, where);
    if (section.empty())
        complain(where, "program `" + name + "` needs a section, such as \"perf_event\", that says what it attaches to");
    codes_.push_back(std::unique_ptr<Code>(new Code(*this, std::move(section), std::move(name), 1, where)));
    return *codes_.back();
}

Code &Builder::function(std::string name, int arguments, Where where) {
    check_name("function", name, where);
    if (arguments < 0 || arguments > 5) {
        complain(where, "function `" + name + "` can't take " + std::to_string(arguments) + " arguments; there are r1 to r5");
        arguments = 5;
    }
    codes_.push_back(std::unique_ptr<Code>(new Code(*this, {}, std::move(name), arguments, where)));
    return *codes_.back();
}

Code &Builder::global_function(std::string name, int arguments, uint32_t pointed, Where where) {
    if (pointed != 0 && arguments == 0) complain(where, "function `" + name + "` has no argument that could be an address");
    Code &code = function(std::move(name), arguments, where);
    code.function_.global = true;
    code.function_.arguments = static_cast<uint8_t>(code.arguments_);
    code.function_.pointed = pointed;
    return code;
}

MapRef Builder::ringbuf(std::string name, uint32_t bytes, Where where) {
    if (bytes < 4096 || (bytes & (bytes - 1)) != 0)
        complain(where, "ring buffer `" + name + "`: " + std::to_string(bytes) +
                            " bytes; the size must be a power of two and whole pages, so 4096 at least");
    return map(uint32_t(MapType::RINGBUF), std::move(name), 0, 0, bytes, where);
}

MapRef Builder::map(uint32_t type, std::string name, uint32_t key_size, uint32_t value_size, uint32_t entries, Where where) {
    MapDef def;
    def.name = std::move(name);
    def.type = type;
    def.key_size = key_size;
    def.value_size = value_size;
    def.max_entries = entries;
    return map(std::move(def), where);
}

MapRef Builder::map(MapDef def, Where where) {
    check_name("map", def.name, where);
    if (map_type_row(def.type).keys == MapKeys::index && def.key_size != 4)
        complain(where,
                 "map `" + def.name + "`: the key of an array is a 32-bit index, not " + std::to_string(def.key_size) + " bytes");
    if (is_storage(def.type) && def.max_entries != 0)
        complain(where, "map `" + def.name + "`: a storage map has no number of entries; its values lie at what they belong to");
    if (def.max_entries == 0 && !is_storage(def.type) && def.type != uint32_t(MapType::PERF_EVENT_ARRAY))
        complain(where, "map `" + def.name + "`: needs a number of entries");
    unit_.maps.push_back(std::move(def));
    return {this, static_cast<uint32_t>(unit_.maps.size() - 1)};
}

GlobalRef Builder::global(const std::string &name, const void *value, size_t size, bool read_only, Where where) {
    check_name("variable", name, where);
    MapDef def;
    def.name = name;
    def.type = uint32_t(MapType::ARRAY);
    def.key_size = 4;
    def.value_size = static_cast<uint32_t>(size);
    def.max_entries = 1;
    def.contents.resize(size);
    std::memcpy(def.contents.data(), value, size);
    def.read_only = read_only;
    if (read_only) def.flags = 1u << 7; // BPF_F_RDONLY_PROG, which lets the verifier treat it as a constant
    unit_.maps.push_back(std::move(def));
    return {this, static_cast<uint32_t>(unit_.maps.size() - 1)};
}

Built Builder::finish() {
    for (auto &code : codes_) code->finish();
    bool any_program = false;
    for (auto &code : codes_) any_program = any_program || !code->function_.section.empty();
    if (!any_program) {
        Diagnostic diagnostic;
        diagnostic.message = "unit `" + unit_.name + "` has no program";
        problems_.push_back(std::move(diagnostic));
    }
    Built built;
    built.problems = std::move(problems_);
    problems_.clear();
    if (built.problems.empty()) {
        built.unit_ = std::move(unit_);
        for (auto &code : codes_) built.unit_.functions.push_back(std::move(code->function_));
    }
    unit_ = Unit();
    codes_.clear();
    return built;
}

std::string Built::report() const {
    std::string out;
    for (const Diagnostic &problem : problems) out += to_string(problem) + "\n";
    return out;
}

} // namespace rawbpf::inline v0
