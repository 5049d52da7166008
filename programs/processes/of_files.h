// What files say of themselves: whether they are an interpreter, or have a variable that is looked for. Most say nothing, and a
// process maps hundreds. So a file is opened, mapped and parsed once, by the first process that leads to it, for all who want to
// know something of it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "programs/processes/process_table.h"
#include "runtime/base/bytes.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::processes {

/// Something that is asked of files.
class FileQuestion {
  public:
    virtual ~FileQuestion() = default;
    /// Whether a module's file was read for it.
    [[nodiscard]] virtual bool answered(uint32_t module) const = 0;
    /// `file` is nullptr, and `bytes` empty, where it is no ELF file, or can't be read.
    virtual void read(uint32_t module, const elf::Elf *file, Bytes bytes) = 0;
};

/// Who opens the files of processes.
class FileReader {
  public:
    explicit FileReader(const ProcessTable &table) : table_(table) {}
    /// From here on each file is read for it, too. It must outlive this.
    void ask(FileQuestion &question) { questions_.push_back(&question); }
    /// Reads the file of a mapping of `pid`'s for all whom it hasn't answered yet. Where this process can't open it, the next one
    /// may.
    void read(uint32_t pid, const ProcessTable::Mapping &mapping);

  private:
    const ProcessTable &table_;
    std::vector<FileQuestion *> questions_;
};

/// The answers to one.
template <class Fact> class OfFiles final : public FileQuestion {
  public:
    using Read = std::optional<Fact> (*)(const elf::Elf &file, Bytes bytes);
    explicit OfFiles(FileReader &reader) : reader_(reader) {}
    OfFiles(const OfFiles &) = delete;
    OfFiles &operator=(const OfFiles &) = delete;

    /// From here on `read` sees each file that anybody asks about. Once.
    void start(Read read) {
        read_ = read;
        reader_.ask(*this);
    }
    /// After start(). nullptr: the file says nothing, or can't be opened by this process.
    Fact *of(uint32_t pid, const ProcessTable::Mapping &mapping) {
        if (!answered(mapping.module)) reader_.read(pid, mapping);
        const auto known = facts_.find(mapping.module);
        return known == facts_.end() || !known->second ? nullptr : &*known->second;
    }
    /// nullptr: it wasn't read, or says nothing.
    [[nodiscard]] const Fact *find(uint32_t module) const {
        const auto at = facts_.find(module);
        return at == facts_.end() || !at->second ? nullptr : &*at->second;
    }
    /// Of a file that says something.
    [[nodiscard]] Fact &at(uint32_t module) { return *facts_.at(module); }

    /// Pairs of a module and a std::optional<Fact>.
    [[nodiscard]] auto begin() const { return facts_.begin(); }
    [[nodiscard]] auto end() const { return facts_.end(); }

    [[nodiscard]] bool answered(uint32_t module) const override { return facts_.count(module) != 0; }
    void read(uint32_t module, const elf::Elf *file, Bytes bytes) override {
        facts_[module] = file ? read_(*file, bytes) : std::nullopt;
    }

  private:
    FileReader &reader_;
    Read read_ = nullptr;
    std::unordered_map<uint32_t, std::optional<Fact>> facts_; // by module; nullopt: it says nothing
};

} // namespace rawbpf::inline v0::processes
