// A kernel that does as it is told: stands behind invoke(), hands out descriptors, fails the n-th call, and knows which
// descriptors were not closed.
//
//     FakeKernel kernel;
//     kernel.fail(3, ENOMEM);              // the third call
//     Result<LoadedObject> r = load(spec);
//     CHECK(kernel.leaks() == "");
//
// bpf(2), perf_event_open(2), ioctl(2), prlimit64(2), capget(2) and close(2) of its own descriptors never reach the real kernel;
// files and memory do, and count as calls that can fail.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <linux/capability.h>
#include <map>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/describe.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::test {

class FakeKernel final : public sys::Backend {
  public:
    FakeKernel() : before_(sys::use_backend(this)) {}
    ~FakeKernel() override { sys::use_backend(before_); }
    FakeKernel(const FakeKernel &) = delete;
    FakeKernel &operator=(const FakeKernel &) = delete;

    /// Answers before anything else, when it has an answer.
    std::function<std::optional<long>(const sys::Call &)> script;

    /// The n-th call from now on (1 = the next one) fails.
    void fail(int n, int os) { fail_at_ = calls_ + n, fail_with_ = os; }
    /// Every call of that bpf(2) command fails.
    void refuse(uint32_t command, int os) { refused_[command] = os; }

    /// Calls so far that could have failed; closing can't.
    [[nodiscard]] int calls() const { return calls_; }
    [[nodiscard]] bool failed() const { return failed_; }
    /// How often a bpf(2) command was used.
    [[nodiscard]] int count(uint32_t command) const {
        auto it = commands_.find(command);
        return it == commands_.end() ? 0 : it->second;
    }
    /// The narrator's lines.
    std::vector<std::string> lines;
    /// What is still open, and what was closed that wasn't open; empty when all is well.
    [[nodiscard]] std::string leaks() const {
        std::string out = closed_wrongly_;
        for (const auto &[fd, what] : open_) append(out, "{} ({}) is open; ", fd, what);
        return out;
    }

    long call(const sys::Call &c) override {
        if (c.number == __NR_close) return close(c);
        ++calls_;
        long result = answer(c);
        if (sys::is_narrated(c)) lines.push_back(sys::describe(c, result));
        return result;
    }

  private:
    static constexpr int kFirst = 1'000'000;

    long close(const sys::Call &c) {
        int fd = static_cast<int>(c.args[0]);
        if (fd < kFirst) return sys::kernel_backend().call(c);
        if (open_.erase(fd) == 0) append(closed_wrongly_, "{} was closed but not open; ", fd);
        return 0;
    }
    long descriptor(std::string what) {
        int fd = kFirst + next_++;
        open_[fd] = std::move(what);
        return fd;
    }
    long answer(const sys::Call &c) {
        if (c.number == __NR_bpf) ++commands_[static_cast<uint32_t>(c.args[0])];
        if (calls_ == fail_at_) {
            failed_ = true;
            return -fail_with_;
        }
        if (c.number == __NR_bpf)
            if (auto it = refused_.find(static_cast<uint32_t>(c.args[0])); it != refused_.end()) return -it->second;
        if (script)
            if (std::optional<long> told = script(c)) return *told;
        switch (c.number) {
        case __NR_bpf: return bpf(c);
        case __NR_perf_event_open: return descriptor("perf event");
        case __NR_ioctl: return 0;
        case __NR_capget: // of a process that is nobody, whoever runs the tests
            std::memset(reinterpret_cast<void *>(c.args[1]), 0, 2 * sizeof(__user_cap_data_struct));
            return 0;
        case __NR_prlimit64:
            if (c.args[3] != 0) *reinterpret_cast<rlimit *>(c.args[3]) = {64 << 10, 64 << 10};
            return 0;
        default: return sys::kernel_backend().call(c);
        }
    }
    long bpf(const sys::Call &c) {
        switch (c.args[0]) {
        case BPF_MAP_CREATE: return descriptor("map");
        case BPF_PROG_LOAD: return descriptor("program");
        case BPF_BTF_LOAD: return descriptor("BTF");
        case BPF_LINK_CREATE: return descriptor("link");
        case BPF_OBJ_GET: return -ENOENT;
        case BPF_ENABLE_STATS: return descriptor("stats");
        case BPF_MAP_LOOKUP_ELEM:
        case BPF_MAP_GET_NEXT_KEY: return -ENOENT;
        case BPF_MAP_LOOKUP_BATCH:
        case BPF_MAP_LOOKUP_AND_DELETE_BATCH: reinterpret_cast<sys::MapBatchAttr *>(c.args[1])->count = 0; return -ENOENT;
        default: return 0;
        }
    }

    sys::Backend *before_;
    int calls_ = 0, fail_at_ = -1, fail_with_ = 0, next_ = 0;
    bool failed_ = false;
    std::map<int, std::string> open_;
    std::map<uint32_t, int> refused_, commands_;
    std::string closed_wrongly_;
};

} // namespace rawbpf::test
