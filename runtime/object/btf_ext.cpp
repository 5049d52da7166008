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
    uint64_t at; ///< of the section's bytes
    uint32_t insn;
    uint32_t words[3];
};

/// Where a part's records go: a list of each section with code.
struct Part {
    size_t words; ///< of a record, its offset included
    void (*reserve)(CodeSection &code, size_t records);
    Result<void> (*add)(const Image &image, CodeSection &code, const Record &record);
    void (*sort)(CodeSection &code);
};

// Only an empty list: many small parts must not copy again and again.
template <auto List> void reserve(CodeSection &code, size_t records) {
    if ((code.*List).empty()) (code.*List).reserve(records);
}
template <auto List> void sort(CodeSection &code) {
    stable_sort(code.*List, [](const auto &a, const auto &b) { return a.insn < b.insn; });
}

Result<void> add_function(const Image &, CodeSection &code, const Record &record) {
    code.func_info.push_back({record.insn, record.words[0]});
    return {};
}
Result<void> add_line(const Image &, CodeSection &code, const Record &record) {
    code.line_info.push_back({record.insn, record.words[0], record.words[1], record.words[2]});
    return {};
}
Result<void> add_relocation(const Image &image, CodeSection &code, const Record &record) {
    const elf::Section &section = *image.btf_ext;
    const std::string_view access = TRY_IN(image.types->string(record.words[1]), "{}: {}", image.name, section.name);
    if (access.empty() || access.size() > kLongestAccess)
        return image.bad(section, record.at, "the access string of a CO-RE relocation has {} characters, which is too long",
                         access.size());
    code.core.push_back({record.insn, record.words[0], std::string(access), record.words[2]});
    return {};
}

// In the order of the header.
constexpr Part kParts[] = {
    {2, reserve<&CodeSection::func_info>, add_function, sort<&CodeSection::func_info>},
    {4, reserve<&CodeSection::line_info>, add_line, sort<&CodeSection::line_info>},
    {4, reserve<&CodeSection::core>, add_relocation, sort<&CodeSection::core>},
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
        uint32_t places[2 * std::size(kParts)] = {};
        for (size_t i = 0; i < std::size(places) && header.offset() + 4 <= header_size; ++i)
            places[i] = TRY(header.read<uint32_t>());

        for (size_t i = 0; i < std::size(kParts); ++i)
            TRY(read(kParts[i], uint64_t(header_size) + places[2 * i], places[2 * i + 1]));
        for (CodeSection &code : image_.code)
            for (const Part &part : kParts) part.sort(code);
        return {};
    }

  private:
    Result<void> read(const Part &part, uint64_t start, uint64_t length) {
        if (length == 0) return {};
        ByteReader whole = image_.elf.reader(section_);
        TRY(whole.seek(start));
        ByteReader reader(TRY(whole.take(length)), format("{}: {}", image_.name, section_.name), start);
        const uint32_t record_size = TRY(reader.read<uint32_t>());
        if (record_size < part.words * 4 || record_size % 4)
            return image_.bad(section_, start, "the records have {} bytes, and must have at least {}", record_size,
                              part.words * 4);
        while (!reader.done()) {
            const uint64_t at = start + reader.offset();
            const uint32_t name_at = TRY(reader.read<uint32_t>());
            const uint32_t count = TRY(reader.read<uint32_t>());
            const std::string_view name = TRY_IN(image_.types->string(name_at), "{}: {}", image_.name, section_.name);
            const Bytes records = TRY(reader.take(uint64_t(count) * record_size));
            const elf::Section *target = image_.find_section(name);
            if (!target || image_.roles[target->index] != Role::code) continue; // nothing of it is loaded
            TRY(records_of(*target, part, records, at + 8, record_size));
        }
        return {};
    }

    Result<void> records_of(const elf::Section &target, const Part &part, Bytes records, uint64_t base, uint32_t record_size) {
        CodeSection &code = image_.code[target.index];
        part.reserve(code, records.size() / record_size);
        // Whole records: read() took count times their size.
        for (size_t at = 0; at < records.size(); at += record_size) {
            const std::byte *raw = records.data() + at;
            const uint32_t offset = load<uint32_t>(raw);
            if (offset % sizeof(Insn) || offset >= target.size)
                return image_.bad(section_, base + at, "byte {:#x} of section {}: no instruction starts there", offset,
                                  target.name);
            Record record{base + at, offset / uint32_t(sizeof(Insn)), {}};
            std::memcpy(record.words, raw + 4, (part.words - 1) * 4);
            TRY(part.add(image_, code, record));
        }
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
