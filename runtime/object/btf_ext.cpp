// .BTF.ext: which types and source lines belong to which instruction, and which instructions are CO-RE relocations.
//
//      header (24 or 32 bytes): magic 0xeb9f, version, flags, hdr_len, then (offset, length) of three parts behind the header
//      part:   record size | section name, count, records... | section name, count, records... | ...
//      records start with the byte offset of the instruction in its section:
//          func_info  offset, FUNC type                          where a function starts
//          line_info  offset, file, line text, line << 10 | column
//          core_relo  offset, type, access string, kind          (absent in the short header)
//
// Record sizes come with the file, so that a newer compiler may append fields: what we know is read, the rest skipped.
// Source: Documentation/bpf/btf.rst, include/uapi/linux/bpf.h (bpf_func_info, bpf_line_info, bpf_core_relo).
#include <algorithm>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/image.h"

namespace rawbpf::inline v0::object {

namespace {

constexpr uint16_t kMagic = 0xeb9f;
constexpr size_t kLongestAccess = 128; // 64 steps, where libbpf and the kernel stop too; real ones have under ten

/// One record, as words; what its fields mean depends on the part.
struct Record {
    uint32_t insn;
    uint32_t words[3];
};

class Reader {
  public:
    Reader(Image &image) : image_(image), section_(*image.btf_ext) {}

    Result<void> read() {
        ByteReader header = image_.elf.reader(section_);
        const uint16_t magic = TRY(header.read<uint16_t>());
        const uint8_t version = TRY(header.read<uint8_t>());
        TRY(header.skip(1)); // flags
        if (magic != kMagic || version != 1)
            return image_.bad(section_, 0, "magic number {:#x}, version {}: this isn't a .BTF.ext", magic, version);
        const uint32_t header_size = TRY(header.read<uint32_t>());
        uint32_t parts[6] = {};
        for (size_t i = 0; i < std::size(parts) && header.offset() + 4 <= header_size; ++i)
            parts[i] = TRY(header.read<uint32_t>());

        TRY(part(header_size, parts[0], parts[1], 2, &CodeSection::func_info,
                 [](const Record &record, uint64_t, FuncInfo &out) -> Result<void> {
                     out = {record.insn, record.words[0]};
                     return {};
                 }));
        TRY(part(header_size, parts[2], parts[3], 4, &CodeSection::line_info,
                 [](const Record &record, uint64_t, LineInfo &out) -> Result<void> {
                     out = {record.insn, record.words[0], record.words[1], record.words[2]};
                     return {};
                 }));
        TRY(part(header_size, parts[4], parts[5], 4, &CodeSection::core,
                 [this](const Record &record, uint64_t at, CoreRelocation &out) { return core_relocation(record, at, out); }));
        for (CodeSection &code : image_.code) {
            sort(code.func_info);
            sort(code.line_info);
            sort(code.core);
        }
        return {};
    }

  private:
    template <class T> static void sort(std::vector<T> &list) {
        stable_sort(list, [](const T &a, const T &b) { return a.insn < b.insn; });
    }

    /// `make` turns a record into one element of `list`.
    template <class T, class Make> Result<void> part(uint64_t header_size, uint64_t offset, uint64_t length, size_t words,
                                                     std::vector<T> CodeSection::*list, Make make) {
        if (length == 0) return {};
        const uint64_t start = header_size + offset;
        ByteReader whole = image_.elf.reader(section_);
        TRY(whole.seek(start));
        ByteReader reader(TRY(whole.take(length)), format("{}: {}", image_.name, section_.name), start);
        const uint32_t record_size = TRY(reader.read<uint32_t>());
        if (record_size < words * 4 || record_size % 4)
            return image_.bad(section_, start, "the records have {} bytes, and must have at least {}", record_size, words * 4);
        while (!reader.done()) {
            const uint64_t at = start + reader.offset();
            const uint32_t name_at = TRY(reader.read<uint32_t>());
            const uint32_t count = TRY(reader.read<uint32_t>());
            const std::string_view name = TRY_IN(image_.types->string(name_at), "{}: {}", image_.name, section_.name);
            const Bytes records = TRY(reader.take(uint64_t(count) * record_size));
            const elf::Section *target = image_.find_section(name);
            if (!target || image_.roles[target->index] != Role::code) continue; // nothing of it is loaded
            TRY(records_of(*target, records, at + 8, record_size, words, image_.code[target->index].*list, make));
        }
        return {};
    }

    template <class T, class Make> Result<void> records_of(const elf::Section &target, Bytes records, uint64_t base,
                                                           uint32_t record_size, size_t words, std::vector<T> &list, Make make) {
        if (list.empty()) list.reserve(records.size() / record_size); // only then: many small parts must not copy again and again
        // Whole records: part() took count times their size.
        for (size_t at = 0; at < records.size(); at += record_size) {
            const std::byte *raw = records.data() + at;
            const uint32_t offset = load<uint32_t>(raw);
            if (offset % sizeof(Insn) || offset >= target.size)
                return image_.bad(section_, base + at, "byte {:#x} of section {}: no instruction starts there", offset,
                                  target.name);
            Record record{offset / uint32_t(sizeof(Insn)), {}};
            std::memcpy(record.words, raw + 4, (words - 1) * 4);
            list.emplace_back();
            TRY(make(record, base + at, list.back()));
        }
        return {};
    }

    Result<void> core_relocation(const Record &record, uint64_t at, CoreRelocation &out) {
        const std::string_view access = TRY_IN(image_.types->string(record.words[1]), "{}: {}", image_.name, section_.name);
        if (access.empty() || access.size() > kLongestAccess)
            return image_.bad(section_, at, "the access string of a CO-RE relocation has {} characters, which is too long",
                              access.size());
        out = {record.insn, record.words[0], std::string(access), record.words[2]};
        return {};
    }

    Image &image_;
    const elf::Section &section_;
};

} // namespace

Result<void> read_btf_ext(Image &image) {
    if (!image.btf_ext || image.btf_ext->size == 0) return {};
    if (!image.types) return image.bad(*image.btf_ext, 0, "the object has no .BTF that it could refer to");
    return Reader(image).read();
}

} // namespace rawbpf::inline v0::object
