// Writes down what the profiler gives to bpf(2), for bare_profile.c to do the same with nothing around it.
//
// run_profile() runs once, for a moment, with an observer of invoke(). Kept are the program named "profile" as it was
// loaded, its BTF, the maps that its instructions refer to, and what was written into these maps; probes and all else are left
// out, so the bare program does no more than it must.
//
//      plan: [ kind u32 | size u32 | body ] ...      descriptors in it are indexes: the n-th map of the plan
//
// Usage: record-bare PLAN
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "asm/insn.h"
#include "programs/profile/profiler.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "tests/bench/bare_plan.h"

using namespace rawbpf;

namespace {

const std::byte *at(uint64_t pointer) { return reinterpret_cast<const std::byte *>(pointer); }

struct Update {
    std::string key, value;
    uint64_t flags;
};

struct RecordedMap {
    sys::MapCreateAttr attr;
    std::vector<Update> updates;
    bool frozen = false;
    std::shared_ptr<RecordedMap> inner = {}; // as it was then: its descriptor may be another map's by now
};

class Recorder final : public sys::Observer {
  public:
    void after(const sys::Call &call, long result) override {
        if (call.number != __NR_bpf || result < 0) return;
        const std::byte *attr = at(call.args[1]);
        const size_t size = call.args[2];
        const int fd = static_cast<int>(result);
        switch (call.args[0]) {
        case BPF_MAP_CREATE: {
            RecordedMap map{};
            std::memcpy(&map.attr, attr, std::min(size, sizeof map.attr));
            if (const auto inner = maps_.find(static_cast<int>(map.attr.inner_map_fd));
                map.attr.inner_map_fd && inner != maps_.end())
                map.inner = std::make_shared<RecordedMap>(inner->second);
            maps_[fd] = map;
            break;
        }
        case BPF_MAP_UPDATE_ELEM: {
            const auto elem = load<sys::MapElemAttr>(attr);
            const auto map = maps_.find(static_cast<int>(elem.map_fd));
            if (map == maps_.end() || map->second.attr.map_type != BPF_MAP_TYPE_ARRAY) break;
            map->second.updates.push_back(
                {text(elem.key, map->second.attr.key_size), text(elem.value, map->second.attr.value_size), elem.flags});
            break;
        }
        case BPF_MAP_FREEZE: maps_[static_cast<int>(load<uint32_t>(attr))].frozen = true; break;
        case BPF_BTF_LOAD: {
            sys::BtfLoadAttr btf{};
            std::memcpy(&btf, attr, std::min(size, sizeof btf));
            btfs_[fd] = text(btf.btf, btf.btf_size);
            break;
        }
        case BPF_PROG_LOAD: {
            sys::ProgLoadAttr prog{};
            std::memcpy(&prog, attr, std::min(size, sizeof prog));
            if (std::strncmp(prog.prog_name, "profile", sizeof prog.prog_name) == 0) keep(prog);
            break;
        }
        default: break;
        }
    }
    std::string plan;

  private:
    static std::string text(uint64_t pointer, size_t size) { return {reinterpret_cast<const char *>(pointer), size}; }
    void step(uint32_t kind, const std::string &body) {
        const uint32_t head[2] = {kind, static_cast<uint32_t>(body.size())};
        plan.append(reinterpret_cast<const char *>(head), sizeof head).append(body);
        plan.append((8 - plan.size() % 8) % 8, '\0');
    }
    template <class T> static std::string raw(const T &value) { return {reinterpret_cast<const char *>(&value), sizeof value}; }

    void keep(sys::ProgLoadAttr prog) {
        plan.clear();
        std::vector<Insn> insns(prog.insn_cnt);
        std::memcpy(insns.data(), at(prog.insns), insns.size() * sizeof(Insn));
        kept_ = 0;
        std::map<int, int32_t> index;
        const auto btf = btfs_.find(static_cast<int>(prog.prog_btf_fd));
        if (btf != btfs_.end()) step(kBareBtf, btf->second);
        for (size_t i = 0; i < insns.size(); ++i) {
            Insn &insn = insns[i];
            if (!is_wide(insn)) continue;
            if (insn.src == BPF_PSEUDO_MAP_FD || insn.src == BPF_PSEUDO_MAP_VALUE) {
                const auto known = index.find(insn.imm);
                insn.imm = known != index.end() ? known->second : index[insn.imm] = keep(maps_[insn.imm]);
            }
            ++i; // the other half
        }
        BareProgram head{};
        head.type = prog.prog_type;
        head.insns = prog.insn_cnt;
        std::string body;
        if (btf != btfs_.end()) {
            head.func_info_rec_size = prog.func_info_rec_size;
            head.func_info_cnt = prog.func_info_cnt;
            head.line_info_rec_size = prog.line_info_rec_size;
            head.line_info_cnt = prog.line_info_cnt;
        }
        body = raw(head);
        body.append(reinterpret_cast<const char *>(insns.data()), insns.size() * sizeof(Insn));
        body += text(prog.func_info, size_t{head.func_info_rec_size} * head.func_info_cnt);
        body += text(prog.line_info, size_t{head.line_info_rec_size} * head.line_info_cnt);
        step(kBareProgram, body);
    }
    /// The map's place in the plan; a map of maps stands after the one that it is made after.
    int32_t keep(const RecordedMap &map) {
        BareMap bare{};
        if (map.inner) bare.inner = static_cast<uint32_t>(keep(*map.inner)) + 1;
        const int32_t index = kept_++;
        bare.type = map.attr.map_type;
        bare.key_size = map.attr.key_size;
        bare.value_size = map.attr.value_size;
        bare.max_entries = map.attr.max_entries;
        bare.flags = map.attr.map_flags;
        bare.key_type = map.attr.btf_key_type_id;
        bare.value_type = map.attr.btf_value_type_id;
        step(kBareMap, raw(bare));
        for (const Update &update : map.updates)
            step(kBareUpdate,
                 raw(BareUpdate{static_cast<uint32_t>(index), map.attr.key_size, update.flags}) + update.key + update.value);
        if (map.frozen) step(kBareFreeze, raw(static_cast<uint32_t>(index)));
        return index;
    }
    std::map<int, RecordedMap> maps_;
    std::map<int, std::string> btfs_;
    int32_t kept_ = 0; // maps that the plan has
};

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: record-bare PLAN\n");
        return 2;
    }
    Recorder recorder;
    sys::observe(&recorder);
    ProfileOptions options;
    options.duration_s = 0.02;
    options.delivery = Delivery::counted;
    Sink sink;
    auto outcome = run_profile(options, sink);
    sys::observe(nullptr);
    if (!outcome) {
        std::fprintf(stderr, "record-bare: %s\n", outcome.error().message().c_str());
        return 1;
    }
    if (recorder.plan.empty()) {
        std::fprintf(stderr, "record-bare: no program named profile was loaded\n");
        return 1;
    }
    auto file = sys::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    auto written =
        file ? sys::write_all(file->get(), recorder.plan.data(), recorder.plan.size()) : Result<void>(Unexpected(file.error()));
    if (!written) std::fprintf(stderr, "record-bare: %s\n", written.error().message().c_str());
    return written ? 0 : 1;
}
