// Opens the files that `inspect`, `relocs`, `check`, `btf min`, `link` and `gen` read, and writes their results.
#include "cli/object_file.h"

#include <algorithm>
#include <cstring>

#include "cli/asm_file.h"
#include "cli/built.h"
#include "cli/common_options.h"
#include "programs/doctor/doctor.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/object/elf_object.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {

namespace {
// What somebody probably did who gave us something that is no object.
std::string_view advice_on(Bytes bytes) {
    constexpr uint8_t kElf[] = {0x7f, 'E', 'L', 'F'};
    if (bytes.empty()) return "the file is empty: did the compiler report an error?";
    if (bytes.size() < sizeof kElf || std::memcmp(bytes.data(), kElf, sizeof kElf) != 0)
        return "BPF objects are made of C by clang --target=bpf -O2 -g -c FILE.bpf.c, of assembly by rawbpf asm";
    return {};
}
} // namespace

Result<InputFile> InputFile::open(std::string_view path, size_t most) {
    InputFile out;
    out.name_ = path == "-" ? "standard input" : std::string(path);
    if (path == "-") {
        *out.text_ = TRY_IN(sys::read_file("/dev/stdin", most), "standard input");
        return out;
    }
    struct stat st = TRY(sys::stat_file(out.name_));
    if (S_ISREG(st.st_mode))
        out.mapping_ = TRY(sys::map_file(out.name_));
    else
        *out.text_ = TRY(sys::read_file(out.name_, most));
    return out;
}

namespace {
Result<ObjectFile> read_object(InputFile &&file) {
    ObjectFile out;
    out.file = std::move(file);
    Result<ObjectSpec> spec = parse_object(out.file.bytes(), out.file.name());
    if (!spec) {
        Error error = std::move(spec).error();
        if (error.hint.empty()) error.hint = advice_on(out.file.bytes());
        return Unexpected(std::move(error));
    }
    out.spec = std::move(*spec);
    return out;
}
} // namespace

Result<ObjectFile> open_object(std::string_view path) { return read_object(TRY(InputFile::open(path))); }

bool is_assembly(std::string_view path, Bytes bytes) {
    constexpr size_t kLookedAt = 65536;
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), std::min(bytes.size(), kLookedAt));
    if (text.starts_with("\x7f"
                         "ELF") ||
        text.find('\0') != std::string_view::npos || text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        return false;
    for (std::string_view ending : {".asm", ".s", ".S"})
        if (path.ends_with(ending)) return true;
    return path == "-" || text.starts_with(".program") || text.find("\n.program") != std::string_view::npos;
}

Result<ObjectFile> open_object_or_assembly(std::string_view path) {
    InputFile file = TRY(InputFile::open(path));
    if (!is_assembly(path, file.bytes())) return read_object(std::move(file));
    ObjectFile out;
    if constexpr (has(Part::assembler)) {
        out.spec = TRY(open_assembly(file));
        out.file = std::move(file);
        return out;
    }
    return Unexpected(left_out(Part::assembler, format("{} is source text for the assembler", file.name())));
}

Result<KernelTypes> KernelTypes::open(const std::string &path) {
    KernelTypes out;
    out.source_ = std::make_unique<inspect::BtfSource>(
        TRY(path.empty() ? inspect::BtfSource::of_kernel("vmlinux") : inspect::BtfSource::of_file(path)));
    out.name_ = path.empty() ? "vmlinux" : path;
    if (path.empty()) out.modules_ = std::make_unique<ModuleTypes>(&out.source_->btf());
    return out;
}

CoreTargets KernelTypes::targets() const {
    CoreTargets out;
    out.kernel = &source_->btf();
    if (modules_) {
        out.modules = [](void *context) { return static_cast<ModuleTypes *>(context)->types(); };
        out.context = modules_.get();
    }
    return out;
}

void append_json_header(std::string &out, const Arguments &arguments) {
    RunInfo run = doctor::describe_run();
    std::vector<std::string> command = {"rawbpf"};
    for (std::string_view word : split(arguments.command().name, ' ')) command.emplace_back(word);
    run.command = own_command_line(std::move(command), arguments);
    run.version = RAWBPF_VERSION;
    render::append_json_header(out, run);
}

int write_result(std::string_view who, std::string_view output, std::string_view text) {
    return write_output(who, output, [&](Output &out) {
        out.writer().write(text);
        return out.writer().flush();
    });
}

} // namespace rawbpf::inline v0::cli
