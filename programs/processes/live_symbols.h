// Names on the machine where the samples are taken, from processes that may end at any moment.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/processes/java_code.h"
#include "programs/processes/js_functions.h"
#include "programs/processes/mapped_files.h"
#include "programs/processes/namer.h"
#include "programs/processes/process_table.h"
#include "programs/processes/scripts.h"
#include "runtime/base/fd.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/jit_dump.h"
#include "runtime/symbols/mapped_file.h"
#include "runtime/symbols/perf_map.h"

namespace rawbpf::inline v0::processes {

class LiveSymbols : public MapsSource, public SymbolSource {
  public:
    /// `build_ids`: read each module's build-id when it is met (for a capture file).
    explicit LiveSymbols(bool build_ids = false) : build_ids_(build_ids) {}
    /// Where lines and inlined functions come from, and debug files that aren't here; nullptr: nowhere.
    void set_debug_info(DebugInfo *debug_info) { debug_info_ = debug_info; }
    /// Where interpreters' functions have their names from; nullptr: nowhere. It must outlive this.
    void set_scripts(const Scripts &scripts) { scripts_ = &scripts; }
    /// Where Java's functions have their names from, if the process tells of none itself; nullptr: nowhere. It must outlive this.
    void set_java(JavaCode &java) { java_ = &java; }
    /// The same of JavaScript's.
    void set_js(const JsFunctions &js) { js_ = &js; }
    /// Java virtual machines whose compiled code is met are asked to write their map (jvm_attach.h).
    void ask_jvms() { ask_jvms_ = true; }
    /// Whose perf-PID.map is believed after a process has gone (the workload's user), beside root's and our own.
    void set_owner(uint32_t uid) { owner_ = uid; }

    Result<symbols::ProcessMaps> maps(uint32_t pid) override;
    uint32_t parent(uint32_t pid) override;
    void met(uint32_t module_id, Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end) override;
    void opened(uint32_t module_id, const Fd &file, const std::string &root) override;
    bool met_jit(const std::vector<uint32_t> &pids, const symbols::Region *dump) override;
    uint64_t code_layer(uint32_t pid, uint64_t address, uint64_t t_ns) override;
    bool tells(uint32_t pid, uint64_t address) override {
        const Jit *told = teller(pid);
        return told && told->code().knows(address);
    }
    std::optional<bool> is_program(uint32_t pid, const symbols::Region &region) override;

    /// What a process tells of the code that it makes, as far as it was read; nullptr: it writes no jitdump.
    [[nodiscard]] const symbols::JitDump *dump_of(uint32_t pid) const;
    /// Reads what it has told up to that time. True: there was something.
    bool read_news(uint32_t pid, uint64_t t_ns);

    std::vector<symbols::KernelName> kernel(std::vector<uint64_t> addresses) override;
    std::optional<symbols::Name> in_module(uint32_t module_id, const Module &module, uint64_t file_offset) override;
    std::optional<uint64_t> begin_of(uint32_t module_id, const Module &module, uint64_t file_offset) override;
    std::optional<symbols::CompiledName> in_memory(uint32_t pid, uint64_t address, uint64_t layer) override;
    std::vector<SourceFrame> in_made_code(uint64_t layer) override;
    std::string build_id(uint32_t module_id, const Module &module) override;
    std::optional<ScriptFrame> in_script(uint64_t offset) override;
    std::vector<SourceFrame> in_source(uint32_t module_id, const Module &module, uint64_t file_offset) override;
    void done_with(uint32_t module_id) override;
    /// Whether a report can't find the module's file: it was in memory only (memfd_create), or has been deleted.
    [[nodiscard]] bool unlinked(uint32_t module_id, const Module &module) const;
    /// What could not be named, and why; one sentence each.
    [[nodiscard]] const std::vector<std::string> &warnings() const { return warnings_; }
    /// Some of it is missing because a file could not be read (EIO, ENOMEM).
    [[nodiscard]] bool unread() const { return unread_; }

  private:
    struct Table {
        Fd file;          // the very file, held open since its unwind table was read, or a process was seen to run it
        std::string root; // the file system it came from, for its separate debug file
        bool loaded = false;
        bool told = false; // that a name could not be read
        std::optional<symbols::ElfSymbols> symbols;
        std::string build_id;
        bool lines_sought = false, lines_missed = false;
        std::unique_ptr<ModuleLines> lines;
    };
    /// What a process tells of the code that it makes: a jitdump, else a perf map, both held open.
    struct Jit {
        Fd file;
        bool is_dump = false;
        bool damaged = false; ///< nothing more is read of it
        uint64_t read_ns = 0, asked_ns = 0;
        symbols::PerfMap map;
        symbols::JitDump dump;
        [[nodiscard]] const symbols::CompiledCode &code() const { return is_dump ? dump.code() : map.code(); }
    };
    struct Silence {
        uint64_t until_ns = 0, length_ns = 0;
    };
    /// nullptr: the process tells nothing of its code.
    [[nodiscard]] Jit *teller(uint32_t pid);
    bool open_jit(const std::vector<uint32_t> &pids, const symbols::Region *dump);
    bool read(uint32_t pid, Jit &jit);
    [[nodiscard]] bool ask(uint32_t pid);
    void missed(const std::string &what, const Error &error);
    void hold(Table &table, const Module &module, const std::vector<uint32_t> &pids, uint64_t start, uint64_t end);
    void load(Table &table, const Module &module);

    [[nodiscard]] static Result<Fd> open_again(const Table &table, const Module &module);

    bool build_ids_;
    DebugInfo *debug_info_ = nullptr;
    const Scripts *scripts_ = nullptr;
    JavaCode *java_ = nullptr;
    const JsFunctions *js_ = nullptr;
    std::optional<uint32_t> owner_;
    bool ask_jvms_ = false;
    std::unordered_map<uint32_t, Table> tables_;   // by module
    std::unordered_map<uint32_t, Jit> jits_;       // by pid
    std::unordered_map<uint32_t, Silence> silent_; // by pid: Java virtual machines that were asked in vain
    size_t held_ = 0;
    bool kernel_warned_ = false, unread_ = false;
    std::vector<std::string> warnings_;
};

} // namespace rawbpf::inline v0::processes
