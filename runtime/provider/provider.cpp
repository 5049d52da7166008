// Probes without a compiler: writes the file that a compiler would have made into memory, and maps it as the dynamic linker
// would.
//
//      make_image()  ->  memfd  ->  [ nop; ret, nop; ret, ... ]   mapped readable, executable
//                               ->  [ semaphore, semaphore, ... ] mapped readable, writable
//
// The kernel puts a breakpoint into a page of a file that is mapped executable, and counts tracers in a page that is mapped
// writable; it doesn't matter who mapped them. So dlopen(3) isn't needed, and statically linked programs can have probes too.
// Tracers find the file among the process's mappings. The descriptor stays open, because some tracers (bpftrace, through bcc)
// open files without a name only through /proc/PID/fd.
//
// A probe is called only while its semaphore isn't zero. Handles point to slots that never move; before load() a slot's
// semaphore is a zero of the library, and it has no code.
#include "runtime/provider/provider.h"

#include <algorithm>
#include <deque>
#include <elf.h>
#include <sys/mman.h>

#include "asm/machines.h"
#include "runtime/base/fail.h"
#include "runtime/base/fd.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/memory_file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::usdt {
namespace {

constexpr uint16_t kMachine = kHost.elf;
constexpr uint16_t kNobody = 0;
constexpr detail::Slot kAbsent{nullptr, &kNobody};

} // namespace

// Whoever is called does nothing, and the caller takes its arguments away again: more than there are do no harm.
void AnyProbe::operator()(std::span<const uint64_t> values) const {
    if (!enabled()) return;
    uint64_t v[kMostArguments] = {};
    std::copy_n(values.begin(), std::min(values.size(), kMostArguments), v);
    using U = uint64_t;
    reinterpret_cast<void (*)(U, U, U, U, U, U, U, U, U, U, U, U)>(const_cast<void *>(slot_->code))(
        v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
}

struct Provider::State {
    std::string name;
    std::vector<NewProbe> probes;
    std::deque<detail::Slot> slots; ///< handles point into it
    Fd file;
    sys::Mapping code, data;
};

Provider::Provider(std::string name) : state_(std::make_unique<State>()) { state_->name = std::move(name); }
Provider::Provider(Provider &&) noexcept = default;
Provider &Provider::operator=(Provider &&) noexcept = default;
Provider::~Provider() = default;

const detail::Slot *Provider::add_probe(NewProbe probe) {
    state_->probes.push_back(std::move(probe));
    return &state_->slots.emplace_back(kAbsent);
}

Result<void> Provider::load() {
    sys::Because why("USDT probes of our own");
    State &s = *state_;
    const Image image = TRY(make_image(s.name, s.probes, kMachine));
    Fd file = TRY(sys::memory_file(s.name));
    TRY(sys::write_all(file.get(), image.bytes.data(), image.bytes.size()));
    sys::Mapping code = TRY(sys::map(file.get(), 0, image.code_size, PROT_READ | PROT_EXEC, MAP_PRIVATE));
    sys::Mapping data = TRY(sys::map(file.get(), image.data_offset, image.data_size, PROT_READ | PROT_WRITE, MAP_PRIVATE));
    for (size_t i = 0; i < s.slots.size(); ++i) {
        s.slots[i].code = code.data() + image.probes[i].code;
        s.slots[i].semaphore =
            reinterpret_cast<const volatile uint16_t *>(data.data() + (image.probes[i].semaphore - image.data_offset));
    }
    s.file = std::move(file);
    s.code = std::move(code);
    s.data = std::move(data);
    return {};
}

void Provider::unload() {
    for (detail::Slot &slot : state_->slots) slot = kAbsent;
    state_->code.reset();
    state_->data.reset();
    state_->file = Fd();
}

bool Provider::loaded() const { return static_cast<bool>(state_->code); }
const std::string &Provider::name() const { return state_->name; }
std::string Provider::path() const {
    return loaded() ? format("/proc/{}/fd/{}", sys::own_pid(), state_->file.get()) : std::string();
}

} // namespace rawbpf::inline v0::usdt
