// A command's words, a script's first line, and the dynamic linker's search (ld.so(8)): in this order
//
//      a name with a slash       is a path
//      DT_RPATH                  of the file and of those that need it, unless it has a DT_RUNPATH
//      $LD_LIBRARY_PATH
//      DT_RUNPATH                of the file; $ORIGIN is where it lies
//      /etc/ld.so.cache          ldconfig's: a sorted list of names and paths; all that have the name, as which is taken
//                                depends on the CPU
//      /lib, /usr/lib ...        musl's has no cache but /etc/ld-musl-ARCH.path
//
// The bytes are hostile: files are bounded in number, words and paths in length, nothing follows itself.
#include "programs/unwind/closure.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <elf.h>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string_view>
#include <sys/stat.h>

#include "asm/machines.h"
#include "runtime/base/format.h"
#include "runtime/elf/elf.h"
#include "runtime/sys/command_search.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::unwind {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kMostCommands = 16, kMostDepth = 8, kMostDirectories = 64, kMostNeeded = 256;
constexpr uint16_t kMachine = kHost.elf;
// Of an entry of ld.so.cache: libc 6, of this machine (glibc's sysdeps/generic/ldconfig.h).
constexpr uint32_t kCacheFlags = kHostArch == Arch::arm64 ? 0x0a03 : kHostArch == Arch::riscv64 ? 0x1003 : 0x0303;
constexpr std::string_view kTriplet = kHost.triplet;

Words split(std::string_view text, std::string_view at) {
    Words out;
    while (out.size() < kMostDirectories) {
        const size_t n = text.find_first_of(at);
        out.emplace_back(text.substr(0, n));
        if (n == std::string_view::npos) break;
        text.remove_prefix(n + 1);
    }
    return out;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string directory_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

// --- Runners ------------------------------------------------------------------------------------------------------------------

struct Runner {
    std::string_view name;
    std::string_view with_value; // letters of its options that take the next word, where it isn't in the same
    int words;                   // of its own, in front of the command
};
constexpr Runner kRunners[] = {{"chrt", "TPD", 1}, {"env", "uCS", 0}, {"ionice", "cnp", 0}, {"nice", "n", 0},
                               {"nohup", "", 0},   {"setsid", "", 0}, {"stdbuf", "ioe", 0}, {"sudo", "ughpCDRrtTU", 0},
                               {"taskset", "", 1}, {"time", "fo", 0}, {"timeout", "ks", 1}};
constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"};
// Words of a shell's that stand in front of a command.
constexpr std::string_view kBefore[] = {"!",    "{",  "(",    "command", "do",    "elif", "else",
                                        "exec", "if", "then", "time",    "until", "while"};

bool assigns(std::string_view word) {
    const size_t equals = word.find('=');
    return equals != std::string_view::npos && equals > 0 &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == equals;
}

// The simple commands of a shell's text, as far as they can be told without being a shell.
std::vector<Words> commands_in(std::string_view text) {
    std::vector<Words> out(1);
    std::string word;
    bool in_word = false, expanded = false;
    const auto end_word = [&] {
        // What a word expands to isn't known, so nothing behind it in command position is, either.
        if (in_word) out.back().push_back(expanded ? std::string() : word);
        word.clear();
        in_word = expanded = false;
    };
    for (size_t i = 0; i < text.size() && out.size() <= kMostCommands; ++i) {
        const char c = text[i];
        if (c == '\'' || c == '"') {
            in_word = true;
            for (++i; i < text.size() && text[i] != c; ++i) {
                if (c == '"' && text[i] == '\\' && i + 1 < text.size())
                    ++i;
                else if (c == '"' && (text[i] == '$' || text[i] == '`'))
                    expanded = true;
                word += text[i];
            }
        } else if (c == '\\' && i + 1 < text.size()) {
            in_word = true;
            word += text[++i];
        } else if (c == '#' && !in_word) {
            while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
        } else if (std::strchr(";|&()\n", c) != nullptr) {
            end_word();
            if (!out.back().empty()) out.emplace_back();
        } else if (c == ' ' || c == '\t') {
            end_word();
        } else {
            if (c == '$' || c == '`' || c == '*' || c == '?') expanded = true;
            in_word = true;
            word += c;
        }
    }
    end_word();
    for (Words &words : out) {
        const auto first = std::find_if(words.begin(), words.end(), [](const std::string &w) {
            return !assigns(w) && std::find(std::begin(kBefore), std::end(kBefore), w) == std::end(kBefore);
        });
        words.erase(words.begin(), first);
    }
    std::erase_if(out, [](const Words &words) { return words.empty() || words[0].empty(); });
    return out;
}

// What follows a runner's own words; or, of a shell, what it is told to run.
std::vector<Words> run_by(const Words &argv) {
    const std::string_view name = base_name(argv[0]);
    if (std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells)) {
        for (size_t i = 1; i + 1 < argv.size() && argv[i].starts_with('-') && argv[i] != "--"; ++i)
            if (argv[i] == "-o" || argv[i] == "-O")
                ++i; // -o pipefail
            else if (!argv[i].starts_with("--") && argv[i].ends_with('c'))
                return commands_in(argv[i + 1]);
        return {};
    }
    const auto runner = std::find_if(std::begin(kRunners), std::end(kRunners), [&](const Runner &r) { return r.name == name; });
    if (runner == std::end(kRunners)) return {};
    size_t at = 1;
    for (; at < argv.size() && argv[at].starts_with('-'); ++at) {
        const std::string &word = argv[at];
        if (word == "--") {
            ++at;
            break;
        }
        if (word.size() == 2 && runner->with_value.find(word[1]) != std::string_view::npos) ++at;
    }
    for (int own = runner->words; own > 0; --own) ++at;
    while (at < argv.size() && assigns(argv[at])) ++at; // env, sudo
    if (at >= argv.size()) return {};
    return {Words(argv.begin() + static_cast<ptrdiff_t>(at), argv.end())};
}

// --- The dynamic linker -------------------------------------------------------------------------------------------------------

struct Dynamic {
    std::string interpreter, rpath, runpath;
    Words needed;
};

std::string text_at(Bytes bytes, uint64_t at) {
    if (at >= bytes.size()) return {};
    const auto *text = reinterpret_cast<const char *>(bytes.data() + at);
    return {text, strnlen(text, std::min<size_t>(bytes.size() - at, PATH_MAX))};
}

Bytes part(Bytes bytes, uint64_t offset, uint64_t size) {
    if (offset > bytes.size()) return {};
    return bytes.subspan(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

Dynamic dynamic_of(const elf::Elf &file, Bytes bytes) {
    Dynamic out;
    for (const elf::Segment &segment : file.segments())
        if (segment.type == PT_INTERP) out.interpreter = text_at(part(bytes, segment.offset, segment.file_size), 0);
    for (const elf::Segment &segment : file.segments()) {
        if (segment.type != PT_DYNAMIC) continue;
        const Bytes entries = part(bytes, segment.offset, segment.file_size);
        std::vector<uint64_t> needed;
        uint64_t rpath = 0, runpath = 0;
        std::optional<uint64_t> strings;
        for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size() && needed.size() < kMostNeeded; at += sizeof(Elf64_Dyn)) {
            const auto entry = load<Elf64_Dyn>(entries.data() + at);
            if (entry.d_tag == DT_NULL) break;
            if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
            if (entry.d_tag == DT_RPATH) rpath = entry.d_un.d_val;
            if (entry.d_tag == DT_RUNPATH) runpath = entry.d_un.d_val;
            if (entry.d_tag == DT_STRTAB) strings = file.file_offset(entry.d_un.d_ptr);
        }
        if (!strings || *strings >= bytes.size()) break;
        const Bytes texts = bytes.subspan(*strings);
        for (const uint64_t at : needed) out.needed.push_back(text_at(texts, at));
        if (rpath != 0) out.rpath = text_at(texts, rpath);
        if (runpath != 0) out.runpath = text_at(texts, runpath);
        break;
    }
    return out;
}

// /etc/ld.so.cache: { magic[20], entries u32, ... 48 bytes } { flags, name, path, version u32, hardware u64 } ... texts; names
// and paths count from the header. Old ones have another list in front.
class Cache {
  public:
    explicit Cache(const std::string &path) {
        if (path.empty()) return;
        if (auto mapped = sys::map_file(path)) mapping_ = std::move(*mapped);
        constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
        const void *at = mapping_ ? memmem(mapping_.data(), mapping_.size(), kMagic.data(), kMagic.size()) : nullptr;
        if (at) bytes_ = mapping_.bytes().subspan(static_cast<size_t>(static_cast<const std::byte *>(at) - mapping_.data()));
    }
    [[nodiscard]] Words find(const std::string &name) const {
        Words out;
        if (bytes_.size() < kHeader) return out;
        const uint64_t count = std::min<uint64_t>(load<uint32_t>(bytes_.data() + 20), (bytes_.size() - kHeader) / kEntry);
        for (uint64_t i = 0; i < count && out.size() < 4; ++i) {
            const std::byte *entry = bytes_.data() + kHeader + i * kEntry;
            const auto text = load<uint32_t>(entry + 4);
            if (load<uint32_t>(entry) != kCacheFlags || text >= bytes_.size() || bytes_.size() - text <= name.size()) continue;
            if (std::memcmp(bytes_.data() + text, name.c_str(), name.size() + 1) != 0) continue;
            out.push_back(text_at(bytes_, load<uint32_t>(entry + 8)));
        }
        return out;
    }

  private:
    static constexpr size_t kHeader = 48, kEntry = 24;
    sys::Mapping mapping_;
    Bytes bytes_;
};

class Search {
  public:
    Search(const CommandEnvironment &environment, const std::function<bool(const std::string &, const Fd &)> &found)
        : environment_(environment), found_(found), cache_(environment.cache) {}

    void command(const std::string &name) {
        if (name.find('/') != std::string::npos) return start(name, 0);
        for (const sys::Candidate &file : sys::candidates(name, environment_.path)) {
            const auto status = sys::stat_file(file.path);
            if (!status || !S_ISREG(status->st_mode) || (status->st_mode & 0111) == 0) continue;
            return start(file.path, 0);
        }
    }

  private:
    struct Object {
        std::string path;
        Words rpath; // of those that needed it, too
    };
    struct Opened {
        Fd fd;
        sys::Mapping mapping;
        bool is_new = false;
    };

    // nullopt: it isn't there, or isn't a regular file.
    std::optional<Opened> open(const std::string &path) {
        if (path.size() >= PATH_MAX) return {};
        auto fd = sys::open(path, O_RDONLY | O_NONBLOCK);
        if (!fd) return {};
        const auto status = sys::stat_fd(fd->get());
        if (!status || !S_ISREG(status->st_mode)) return {};
        const std::pair<uint64_t, uint64_t> identity(status->st_dev, status->st_ino);
        Opened out{std::move(*fd), {}, std::find(seen_.begin(), seen_.end(), identity) == seen_.end()};
        if (!out.is_new) return out;
        auto mapping = sys::map_file(out.fd, path);
        if (!mapping) return {};
        out.mapping = std::move(*mapping);
        if (seen_.size() >= environment_.most) over_ = true;
        seen_.push_back(identity);
        return out;
    }

    void start(const std::string &path, size_t depth) {
        auto opened = over_ || depth > kMostDepth ? std::nullopt : open(path);
        if (!opened || !opened->is_new || over_) return;
        const Bytes bytes = opened->mapping.bytes();
        if (bytes.size() > 2 && std::memcmp(bytes.data(), "#!", 2) == 0) {
            std::string_view line(reinterpret_cast<const char *>(bytes.data()) + 2, std::min<size_t>(bytes.size() - 2, 254));
            line = line.substr(0, line.find('\n'));
            Words words;
            for (std::string &word : split(line, " \t\r"))
                if (!word.empty()) words.push_back(std::move(word));
            if (words.empty()) return;
            for (const Words &run : commands_of(words))
                if (run[0].find('/') != std::string::npos)
                    start(run[0], depth + 1);
                else
                    command(run[0]);
            return;
        }
        objects_.push_back({path, {}});
        object(std::move(*opened), objects_.back());
        while (!objects_.empty() && !over_) { // breadth first: what is needed by all comes early
            const Object next = objects_.front();
            objects_.pop_front();
            needs(next);
        }
        objects_.clear();
    }

    // Tells of it, and remembers what it needs.
    bool object(Opened opened, const Object &object) {
        const Bytes bytes = opened.mapping.bytes();
        const auto file = elf::Elf::parse(bytes, object.path);
        if (!file || file->machine() != kMachine || !file->is_64() || (file->type() != ET_EXEC && file->type() != ET_DYN))
            return false;
        if (!found_(object.path, opened.fd)) over_ = true;
        pending_.push_back({object.path, dynamic_of(*file, bytes)});
        return true;
    }
    void needs(const Object &of) {
        const auto at = std::find_if(pending_.begin(), pending_.end(), [&](const auto &p) { return p.first == of.path; });
        if (at == pending_.end()) return;
        const Dynamic dynamic = std::move(at->second);
        pending_.erase(at);
        if (!dynamic.interpreter.empty()) {
            musl_ = base_name(dynamic.interpreter).starts_with("ld-musl");
            try_library(dynamic.interpreter, {});
        }
        const auto expanded = [&](const std::string &paths) {
            Words out;
            if (paths.empty()) return out;
            for (std::string directory : split(paths, ":")) {
                for (const std::string_view word : {"$ORIGIN", "${ORIGIN}"})
                    if (const size_t n = directory.find(word); n != std::string::npos)
                        directory.replace(n, word.size(), directory_of(of.path));
                out.push_back(directory.empty() ? "." : std::move(directory));
            }
            return out;
        };
        Words rpath = dynamic.runpath.empty() ? expanded(dynamic.rpath) : Words();
        if (dynamic.runpath.empty()) rpath.insert(rpath.end(), of.rpath.begin(), of.rpath.end());
        if (rpath.size() > kMostDirectories) rpath.resize(kMostDirectories);
        const Words runpath = expanded(dynamic.runpath), library_path = split(environment_.library_path, ":;");
        for (const std::string &name : split(environment_.preload, ": "))
            if (!name.empty() && !dynamic.interpreter.empty()) library(name, rpath, library_path, runpath);
        for (const std::string &name : dynamic.needed) library(name, rpath, library_path, runpath);
    }
    void library(const std::string &name, const Words &rpath, const Words &library_path, const Words &runpath) {
        if (name.empty() || over_) return;
        if (name.find('/') != std::string::npos) {
            try_library(name, rpath);
            return;
        }
        for (const Words *directories : {&rpath, &library_path, &runpath})
            for (const std::string &directory : *directories)
                if (!directory.empty() && try_library(directory + "/" + name, rpath)) return;
        bool any = false;
        if (!musl_)
            for (const std::string &path : cache_.find(name)) any = try_library(path, rpath) || any;
        if (any) return;
        Words defaults;
        if (musl_)
            if (auto list = sys::read_file(format("/etc/ld-musl-{}.path", kTriplet.substr(0, kTriplet.find('-'))), 1 << 16))
                defaults = split(*list, ":\n");
        if (defaults.empty())
            defaults = {"/lib64",
                        "/usr/lib64",
                        "/lib",
                        "/usr/local/lib",
                        "/usr/lib",
                        format("/lib/{}", kTriplet),
                        format("/usr/lib/{}", kTriplet)};
        for (const std::string &directory : defaults)
            if (!directory.empty() && try_library(directory + "/" + name, rpath)) return;
    }
    // True: that is it, known before or not.
    bool try_library(const std::string &path, const Words &rpath) {
        auto opened = open(path);
        if (!opened) return false;
        if (!opened->is_new || over_) return true;
        Object next{path, rpath};
        if (!object(std::move(*opened), next)) return false;
        objects_.push_back(std::move(next));
        return true;
    }

    const CommandEnvironment &environment_;
    const std::function<bool(const std::string &, const Fd &)> &found_;
    Cache cache_;
    std::vector<std::pair<uint64_t, uint64_t>> seen_; // device, inode
    std::deque<Object> objects_;                      // whose needs haven't been looked for
    std::vector<std::pair<std::string, Dynamic>> pending_;
    bool over_ = false, musl_ = false;
};

} // namespace

CommandEnvironment CommandEnvironment::own() {
    const auto variable = [](const char *name, const char *otherwise) {
        const char *value = getenv(name);
        return std::string(value ? value : otherwise);
    };
    CommandEnvironment out;
    out.path = variable("PATH", "/usr/local/bin:/usr/bin:/bin");
    out.library_path = variable("LD_LIBRARY_PATH", "");
    out.preload = variable("LD_PRELOAD", "");
    return out;
}

std::vector<std::vector<std::string>> commands_of(const std::vector<std::string> &argv) {
    std::vector<Words> out;
    if (argv.empty() || argv[0].empty()) return out;
    out.push_back(argv);
    for (size_t i = 0; i < out.size(); ++i) // what these run is looked at in its turn; each is shorter than who runs it
        for (Words &run : run_by(out[i]))
            if (out.size() < kMostCommands) out.push_back(std::move(run));
    return out;
}

void files_of_command(const std::vector<std::string> &argv, const CommandEnvironment &environment,
                      const std::function<bool(const std::string &path, const Fd &file)> &found) {
    sys::Because why("what the command will run, so that its unwind tables are there when it begins");
    Search search(environment, found);
    for (const Words &command : commands_of(argv)) search.command(command[0]);
}

} // namespace rawbpf::inline v0::unwind
