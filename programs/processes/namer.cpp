// Naming. A return address points behind the call: when the call is a function's last instruction (it calls something that never
// returns) it even points into the next function. So callers are looked up one byte earlier, and the offset shown is the
// address's.
//
// Where does a stack end as it should? At the function a thread starts in. A walk by frame pointers that ends anywhere else met a
// function that uses the frame pointer register for something else: most distributions' libc is built so. main() counts as an
// end, too: above it is only libc's start-up code, which often can't be walked. Where that code has no symbol (a stripped libc
// keeps
// __libc_start_main but not the static function in front of it, which calls main) its neighbour tells what it is.
#include "programs/processes/namer.h"

#include <algorithm>

#include "runtime/base/stable_sort.h"
#include "runtime/symbols/long_names.h"

namespace rawbpf::inline v0::processes {

namespace {

constexpr std::string_view kBeginnings[] = {
    "main",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "thread_start",
    "_dl_start",
    "_dl_start_user",
    "__start_thread",
    "__pthread_start",
    "_rt0_amd64",
    "runtime.mstart",
    "runtime.goexit",
    "runtime.rt0_go",
    "__libc_init",
    "libc_start_main_stage2",
    "_start_c",
    "start",
};
constexpr uint64_t kNeighbour = 512; // bytes before __libc_start_main that its helper may begin at

} // namespace

bool begins_thread(std::string_view symbol) {
    // Versioned names ("clone@@GLIBC_2.2.5"), and Go's assembly variants ("runtime.goexit.abi0").
    const std::string_view plain = symbol.substr(0, symbol.find('@'));
    for (std::string_view name : kBeginnings) {
        if (plain == name) return true;
        if (plain.size() > name.size() && plain.starts_with(name) && plain.substr(name.size()) == ".abi0") return true;
    }
    return false;
}

Namer::Slot &Namer::slot(uint32_t place) {
    if (frames_.size() <= place) frames_.resize(std::max<size_t>(place + 1, tree_.places().size()));
    return frames_[place];
}

void Namer::set_kernel(uint32_t place, const symbols::KernelName *name) {
    const FrameLocation &at = tree_.places()[place];
    auto frame = std::make_shared<Frame>();
    frame->address = at.address;
    frame->kernel = true;
    if (name) {
        frame->symbol = name->symbol;
        frame->symbol_offset = name->offset + (at.caller ? 1 : 0);
        frame->module = name->module;
    }
    slot(place).frame = std::move(frame);
}

void Namer::name_kernel(const std::vector<uint32_t> &places) {
    std::vector<uint64_t> addresses;
    for (uint32_t place : places) {
        const FrameLocation &at = tree_.places()[place];
        addresses.push_back(at.address - (at.caller ? 1 : 0));
    }
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    std::vector<symbols::KernelName> names;
    if (!addresses.empty()) names = source_.kernel(std::move(addresses));
    stable_sort(names, [](const auto &a, const auto &b) { return a.address < b.address; });
    for (uint32_t place : places) {
        const FrameLocation &at = tree_.places()[place];
        const uint64_t wanted = at.address - (at.caller ? 1 : 0);
        auto found = std::lower_bound(names.begin(), names.end(), wanted,
                                      [](const symbols::KernelName &name, uint64_t address) { return name.address < address; });
        set_kernel(place, found != names.end() && found->address == wanted ? &*found : nullptr);
    }
}

void Namer::name_user(uint32_t place) {
    const FrameLocation &at = tree_.places()[place];
    auto frame = std::make_shared<Frame>();
    frame->address = at.address;
    bool begins = false;
    if (at.module != kNone && modules_[at.module].kind == ModuleKind::script) {
        frame->module = modules_[at.module].path;
        frame->address = 0; // it isn't in memory as code
        if (auto its = source_.in_script(at.file_offset)) {
            frame->symbol = std::move(its->function);
            frame->file = std::move(its->file);
            frame->line = its->line;
        }
    } else if (at.module != kNone) {
        const Module &module = modules_[at.module];
        const uint64_t back = at.caller ? 1 : 0;
        std::optional<symbols::Name> name;
        if (module.kind == ModuleKind::anonymous) {
            if (auto its = source_.in_memory(at.pid, at.address - back, at.file_offset)) {
                name = std::move(its->name);
                frame->file = std::move(its->file);
                frame->line = its->line;
            }
        } else {
            frame->file_offset = at.file_offset;
            name = source_.in_module(at.module, module, at.file_offset - back);
            frame->build_id = module.build_id.empty() ? source_.build_id(at.module, module) : module.build_id;
        }
        frame->module = module.path;
        if (name) {
            frame->symbol = std::move(name->symbol);
            frame->symbol_offset = name->offset + back;
            begins = begins_thread(frame->symbol);
        } else if (module.kind == ModuleKind::file) {
            frame->function_offset = source_.begin_of(at.module, module, at.file_offset - back).value_or(0);
        }
        if (!begins && at.caller && module.kind == ModuleKind::file) {
            for (uint64_t ahead = 64; !begins && ahead <= kNeighbour; ahead += 64) {
                auto neighbour = source_.in_module(at.module, module, at.file_offset + ahead);
                begins = neighbour && neighbour->symbol.starts_with("__libc_start_main");
            }
        }
    }
    Slot &into = slot(place);
    if (detail_.any() && at.module != kNone && modules_[at.module].kind == ModuleKind::file)
        add_source(into, *frame, at.caller,
                   source_.in_source(at.module, modules_[at.module], at.file_offset - (at.caller ? 1 : 0)), detail_);
    const ModuleKind kind = at.module == kNone ? ModuleKind::file : modules_[at.module].kind;
    if (kind == ModuleKind::anonymous || kind == ModuleKind::script) // whoever made the code has said it: it costs nothing
        add_source(into, *frame, at.caller, source_.in_made_code(at.file_offset), {true, true});
    into.frame = std::move(frame);
    into.begins = begins;
}

void Namer::add_source(Slot &slot, Frame &frame, bool caller, std::vector<SourceFrame> &&source, SourceDetail detail) {
    if (source.empty()) return;
    const auto place = [&](Frame &of, SourceFrame &from) {
        if (!detail.lines) return;
        of.file = std::move(from.file);
        of.line = from.line;
        of.column = from.column;
    };
    if (detail.inlined && source.size() > 1) {
        slot.inlined = std::make_unique<std::vector<FramePtr>>();
        slot.inlined->reserve(source.size() - 1);
        for (size_t i = 0; i + 1 < source.size(); ++i) {
            auto inner = std::make_shared<Frame>(frame);
            inner->symbol = symbols::within_bound(source[i].function);
            inner->symbol_offset = 0;
            inner->inlined = true;
            place(*inner, source[i]);
            slot.inlined->push_back(std::move(inner));
        }
    }
    if (frame.symbol.empty() && !source.back().function.empty()) {
        frame.symbol = symbols::within_bound(source.back().function);
        frame.symbol_offset = source.back().offset + (caller ? 1 : 0);
    }
    place(frame, source.back());
}

void Namer::add_frames(uint32_t place, std::vector<FramePtr> &to) {
    const FramePtr &outer = frame(place);
    if (const auto &inlined = frames_[place].inlined) to.insert(to.end(), inlined->begin(), inlined->end());
    to.push_back(outer);
}

void Namer::give(uint32_t place, std::vector<Frame> &&names) {
    const FrameLocation &at = tree_.places()[place];
    const ModuleKind kind = at.module == kNone ? ModuleKind::file : modules_[at.module].kind;
    std::vector<FramePtr> frames;
    for (Frame &name : names) {
        name.address = kind == ModuleKind::script ? 0 : at.address; // as in name_user()
        name.file_offset = kind == ModuleKind::script || kind == ModuleKind::anonymous ? 0 : at.file_offset;
        name.kernel = at.kernel;
        name.inlined = frames.size() + 1 < names.size();
        frames.push_back(std::make_shared<Frame>(std::move(name)));
    }
    Slot &into = slot(place);
    into.frame = std::move(frames.back());
    frames.pop_back();
    into.begins = !at.kernel && begins_thread(into.frame->symbol);
    if (!frames.empty()) into.inlined = std::make_unique<std::vector<FramePtr>>(std::move(frames));
}

const FramePtr &Namer::frame(uint32_t place) {
    if (!named(place)) {
        if (tree_.places()[place].kernel)
            name_kernel({place});
        else
            name_user(place);
    }
    return frames_[place].frame;
}

void Namer::name_all() {
    std::vector<uint32_t> kernel, user;
    for (uint32_t place = 0; place < tree_.places().size(); ++place) {
        if (!named(place)) (tree_.places()[place].kernel ? kernel : user).push_back(place);
    }
    name_kernel(kernel);
    stable_sort(user, [&](uint32_t a, uint32_t b) {
        const uint32_t of_a = tree_.places()[a].module, of_b = tree_.places()[b].module;
        return of_a != of_b ? of_a < of_b : a < b;
    });
    uint32_t open = kNone;
    for (uint32_t place : user) {
        const uint32_t module = tree_.places()[place].module;
        if (module != open && open != kNone) source_.done_with(open);
        open = module;
        name_user(place);
    }
    if (open != kNone) source_.done_with(open);
}

} // namespace rawbpf::inline v0::processes
