// A program's statements, one after the other. Variables are slots of the stack that are 0 at the beginning, so that a path that
// doesn't set one reads 0. An event is filled where it will be read: in the ring's own record, which is submitted at the end.
#include <algorithm>

#include "programs/experiment/compiling.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr uint32_t kEventHead = 16; // the time, the event's number
constexpr size_t kMostLocals = 16;

} // namespace

ProbeCode::Space::Space(ProbeCode &code, uint32_t size) : code_(code), index_(0) {
    size = std::max<uint32_t>((size + 7) / 8 * 8, 8);
    for (size_t i = 0; i < code.spaces_.size(); ++i)
        if (!code.spaces_[i].used && code.spaces_[i].slot.size() >= size && code.spaces_[i].slot.size() <= 2 * size) {
            index_ = i;
            code.spaces_[i].used = true;
            return;
        }
    code.spaces_.push_back({code.f_.stack(size, 8), true});
    index_ = code.spaces_.size() - 1;
}
ProbeCode::Space::~Space() { code_.spaces_[index_].used = false; }
Slot ProbeCode::Space::slot() const { return code_.spaces_[index_].slot; }

void ProbeCode::find_locals(const std::vector<Statement> &body, std::vector<std::string> &out) const {
    for (const Statement &statement : body) {
        if (statement.kind == Statement::Kind::local && statement.declares) out.push_back(statement.name);
        find_locals(statement.then, out);
        find_locals(statement.otherwise, out);
    }
}

bool ProbeCode::run(const Probe &probe) {
    f_.mov(r6, r1);
    std::vector<std::string> names;
    find_locals(probe.body, names);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > kMostLocals) return fail(probe.at, format("a probe has at most {} variables", kMostLocals));
    std::vector<std::pair<std::string, Slot>> slots;
    for (const std::string &name : names) {
        slots.emplace_back(name, f_.stack(8, 8, name));
        f_.store<uint64_t>(slots.back().second, 0);
    }
    for (auto &[name, slot] : slots) locals_.emplace(name, Local{slot, {}});
    // Which of them are known where comes with the text: before its `let`, a name is what it is outside.
    std::map<std::string, Local> declared;
    declared.swap(locals_);
    waiting_ = std::move(declared);
    done_ = f_.label("done");
    if (probe.condition && !condition(*probe.condition, *done_, false)) return false;
    if (f_.reachable() && !statements(probe.body)) return false;
    f_.bind(*done_);
    f_.ret(0);
    return true;
}

bool ProbeCode::statements(const std::vector<Statement> &body) {
    for (const Statement &one : body) {
        if (!f_.reachable()) return true; // behind a `return`, or what a parameter decided
        if (!statement(one)) return false;
    }
    return true;
}

bool ProbeCode::statement(const Statement &statement) {
    switch (statement.kind) {
    case Statement::Kind::assign: return assign(statement);
    case Statement::Kind::remove: return remove(statement);
    case Statement::Kind::leave: f_.jump(*done_); return true;
    case Statement::Kind::emit: return emit(statement);
    case Statement::Kind::branch: return branch(statement);
    case Statement::Kind::local: break;
    }
    Typed type;
    if (!infer(statement.value, type)) return false;
    if (type.text)
        return fail(statement.value.at, "a variable is a number", "texts go into keys, maps and events where they are needed");
    auto known = locals_.find(statement.name);
    if (known == locals_.end()) {
        const auto waiting = waiting_.find(statement.name);
        if (waiting == waiting_.end())
            return fail(statement.at, format("there is no variable {}", statement.name),
                        format("let {} = ... makes one", statement.name));
        if (!statement.declares) return fail(statement.at, format("the variable {} isn't known here yet", statement.name));
    }
    if (!value(statement.value)) return false;
    if (known == locals_.end()) {
        known = locals_.emplace(statement.name, waiting_.find(statement.name)->second).first;
        known->second.type = type;
    } else if (statement.declares) {
        known->second.type = type;
    }
    f_.store<uint64_t>(known->second.slot, r0);
    return true;
}

bool ProbeCode::branch(const Statement &statement) {
    const Label otherwise = f_.label("else"), end = f_.label("end");
    if (!condition(statement.value, otherwise, false)) return false;
    if (f_.reachable() && !statements(statement.then)) return false;
    if (f_.reachable() && !statement.otherwise.empty()) f_.jump(end);
    f_.bind(otherwise);
    if (f_.reachable() && !statements(statement.otherwise)) return false;
    f_.bind(end);
    return true;
}

bool ProbeCode::store_field(const Expr &expr, const Typed &type, uint32_t offset) {
    if (type.text) return text_into(expr, type, r7 + runtime(offset));
    if (!value(expr)) return false;
    f_.store<uint64_t>(r7 + runtime(offset), r0);
    return true;
}

bool ProbeCode::emit(const Statement &statement) {
    std::vector<Typed> types;
    for (const Statement::Field &field : statement.fields) {
        Typed type;
        if (!infer(field.value, type)) return false;
        type.pointee = 0;
        if (field.value.kind == Expr::Kind::text) type.size = std::max<uint32_t>(type.size, 32);
        types.push_back(type);
    }
    UsedEvent *event = all_.event(statement, types);
    if (!event) return false;
    bool good = true;
    f_.reserve(r7, all_.ring(), event->view.size, [&] {
          f_.call(helper::ktime_get_ns);
          f_.store<uint64_t>(r7, r0);
          f_.mov(r0, runtime(event->view.number));
          f_.store<uint64_t>(r7 + 8, r0);
          uint32_t offset = kEventHead;
          for (size_t i = 0; good && i < statement.fields.size(); ++i) {
              good = store_field(statement.fields[i].value, event->fields[i], offset);
              offset += event->fields[i].size;
          }
      }).else_([&] {
        const Space key(*this, 4);
        f_.store<uint32_t>(key.slot(), 0);
        f_.lookup(all_.lost(), key.slot(), [&] {
            f_.mov(r1, 1);
            f_.atomic_add<uint64_t>(r0, r1);
        });
    });
    return good;
}

UsedEvent *Compiler::event(const Statement &statement, const std::vector<Typed> &fields) {
    auto [at, first] = events_.try_emplace(statement.name);
    UsedEvent &event = at->second;
    if (first) {
        event.first = statement.at;
        event.view.event = statement.name;
        event.view.ring = kEventRing;
        event.view.number = static_cast<uint32_t>(events_.size());
        event.view.numbered = true;
        event.fields = fields;
        uint32_t offset = kEventHead;
        for (size_t i = 0; i < fields.size(); ++i) {
            event.view.fields.push_back({statement.fields[i].name, fields[i].show, offset, fields[i].size, 0});
            offset += fields[i].size;
        }
        event.view.size = offset;
        return &event;
    }
    bool same = event.fields.size() == fields.size();
    for (size_t i = 0; same && i < fields.size(); ++i)
        same = event.view.fields[i].name == statement.fields[i].name && event.fields[i].text == fields[i].text &&
               event.fields[i].size == fields[i].size;
    if (same) return &event;
    (void)fail(statement.at, format("the event {} has other fields here than in line {}", statement.name, event.first.line),
               "the same names in the same order, texts of the same size");
    return nullptr;
}

} // namespace rawbpf::inline v0::experiment
