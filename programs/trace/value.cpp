// file->f_inode->i_size, with the running kernel's BTF: `file` is argument 0, a struct file *; f_inode lies 32 bytes into it and
// is a pointer; i_size lies 80 bytes into that.
//
//      argument 0 --+32--> pointer --+80--> 8 bytes, signed
//
// What BTF says of this kernel is known while the program is made, so the distances are plain numbers in it.
#include "programs/trace/value.h"

#include <algorithm>
#include <span>

#include "runtime/base/fail.h"
#include "runtime/btf/print_c.h"
#include "runtime/link/names.h"

namespace rawbpf::inline v0::trace {
namespace {

struct NameRow {
    std::string_view name;
    Value::From from;
    Type type;
};
std::span<const NameRow> common_names() {
    static const NameRow rows[] = {
        {"duration", Value::From::duration, {"u64", Show::integer, 8, false}},
        {"comm", Value::From::comm, {"char[16]", Show::characters, 8, false, 0, 16}},
        {"pid", Value::From::pid, {"pid_t", Show::integer, 4, false}},
        {"tid", Value::From::tid, {"pid_t", Show::integer, 4, false}},
        {"uid", Value::From::uid, {"uid_t", Show::integer, 4, false}},
        {"gid", Value::From::gid, {"gid_t", Show::integer, 4, false}},
        {"cpu", Value::From::cpu, {"int", Show::integer, 4, false}},
    };
    return rows;
}
const NameRow *find_common(std::string_view name) {
    for (const NameRow &row : common_names())
        if (row.name == name) return &row;
    return nullptr;
}

// The nearest first, then all.
std::string known_names(const ProbeSite &place, std::string_view wanted) {
    NearestNames near(wanted);
    for (const Parameter &parameter : place.signature.parameters) near.see(parameter.name);
    for (const NameRow &row : common_names()) near.see(row.name);
    near.see("ret");
    std::string out = near.hint();
    if (!out.empty()) out += ' ';
    out += "known are ";
    for (const Parameter &parameter : place.signature.parameters)
        if (!parameter.name.empty()) append(out, "{}, ", parameter.name);
    return out + "arg0 to arg5, ret, duration, comm, pid, tid, uid, gid, cpu";
}

// A member, in anonymous members too: its distance and type.
struct Found {
    btf::Member member;
    uint64_t bits = 0;
};
Result<bool> find_member(const btf::Btf &btf, const btf::Type &type, std::string_view name, uint64_t bits, int depth, Found &out,
                         NearestNames &near) {
    if (depth > 16) return fail(Errc::bad_input, "{}: type {} is nested too deep", btf.name(), type.id);
    for (uint32_t i = 0; i < type.vlen; ++i) {
        const btf::Member member = TRY(btf.member(type, i));
        if (member.name == name) {
            out.member = member;
            out.bits = bits + member.bit_offset;
            return true;
        }
        if (member.name.empty()) {
            const btf::Type inner = TRY(btf.resolve(member.type));
            if (inner.kind == btf::Kind::struct_ || inner.kind == btf::Kind::union_)
                if (TRY(find_member(btf, inner, name, bits + member.bit_offset, depth + 1, out, near))) return true;
        } else {
            near.see(member.name);
        }
    }
    return false;
}

class MemberWalk {
  public:
    MemberWalk(const Expression &expression, const btf::Btf &btf, Value &value)
        : expression_(expression), btf_(btf), value_(value) {}

    Result<void> run(const Node &name) {
        id_ = value_.type.id;
        in_memory_ = false; // the value itself is a pointer in a register
        for (const Step &step : name.steps) TRY(one(step));
        btf::Type type = TRY(btf_.resolve(id_));
        if (type.kind == btf::Kind::struct_ || type.kind == btf::Kind::union_)
            return Unexpected(expression_.complaint(name.steps.back().column,
                                                    format("{} is a whole {}", last_, btf::describe(btf_, id_)),
                                                    "name one of its members"));
        value_.reads.push_back(offset_);
        value_.type = TRY(describe_type(btf_, id_, last_));
        return {};
    }

  private:
    Result<void> one(const Step &step) {
        btf::Type type = TRY(btf_.resolve(id_));
        if (type.kind == btf::Kind::ptr) { // `->`, or `.` which people write as well: what it points at
            if (in_memory_) value_.reads.push_back(offset_);
            offset_ = 0;
            in_memory_ = true;
            id_ = type.size_or_type;
            type = TRY(btf_.resolve(id_));
            if (step.member.empty()) return index(step, id_);
        }
        if (step.member.empty()) {
            if (type.kind != btf::Kind::array)
                return Unexpected(expression_.complaint(step.column, "only arrays and pointers have elements"));
            const btf::Array array = btf_.array(type);
            if (step.index >= array.count)
                return Unexpected(expression_.complaint(step.column, format("the array has {} elements", array.count)));
            return index(step, array.element);
        }
        if (type.kind != btf::Kind::struct_ && type.kind != btf::Kind::union_)
            return Unexpected(
                expression_.complaint(step.column, format("{} has no members", btf::describe(btf_, id_)), forward(type)));
        Found found;
        NearestNames near(step.member);
        if (!TRY(find_member(btf_, type, step.member, 0, 0, found, near)))
            return Unexpected(expression_.complaint(
                step.column, format("{} has no member {}", btf::describe(btf_, id_), step.member), near.hint()));
        last_ = step.member;
        id_ = found.member.type;
        offset_ += found.bits / 8;
        value_.bit_size = static_cast<uint8_t>(found.member.bit_size);
        if (found.member.bit_size != 0) {
            const uint64_t size = TRY(btf_.size_of(id_));
            const uint64_t bytes = std::clamp<uint64_t>(size, 1, 8);
            offset_ -= found.bits / 8;
            offset_ += found.bits / 8 / bytes * bytes;
            value_.bit_offset = static_cast<uint8_t>(found.bits - found.bits / 8 / bytes * bytes * 8);
        }
        return {};
    }
    Result<void> index(const Step &step, btf::TypeId id) {
        const uint64_t size = TRY(btf_.size_of(id));
        if (size == 0 || step.index > (uint64_t{1} << 31) / size)
            return Unexpected(expression_.complaint(step.column, "that is too far"));
        offset_ += step.index * size;
        id_ = id;
        last_ = format("[{}]", step.index);
        return {};
    }
    static std::string forward(const btf::Type &type) {
        return type.kind == btf::Kind::fwd ? "this kernel's BTF only knows that it exists: it belongs to a module" : "";
    }

    const Expression &expression_;
    const btf::Btf &btf_;
    Value &value_;
    btf::TypeId id_ = 0;
    uint64_t offset_ = 0;
    bool in_memory_ = false;
    std::string last_;
};

} // namespace

Result<Value> resolve_value(const Expression &expression, const Node &name, const ProbeSite &place, const btf::Btf *kernel) {
    Value out;
    const std::vector<Parameter> &parameters = place.signature.parameters;
    const auto named = [&](const Parameter &parameter) { return parameter.name == name.text; };
    const auto own = std::find_if(parameters.begin(), parameters.end(), named);
    const bool numbered = name.text.size() == 4 && name.text.starts_with("arg") && name.text[3] >= '0' && name.text[3] <= '5';
    if (own != parameters.end()) {
        out.argument = static_cast<uint32_t>(own - parameters.begin());
        out.type = own->type;
    } else if (numbered) {
        out.argument = static_cast<uint32_t>(name.text[3] - '0');
        if (place.signature.known && out.argument >= parameters.size() && !place.signature.variadic)
            return Unexpected(
                expression.complaint(name.column, format("{} takes {} arguments", place.function, parameters.size())));
        if (out.argument < parameters.size())
            out.type = parameters[out.argument].type;
        else
            out.type = {"unsigned long", Show::integer, 8, false};
    } else if (name.text == "ret" || name.text == "retval") {
        out.from = Value::From::result;
        out.type = place.signature.known ? place.signature.returns : Type{"long", Show::integer, 8, true};
    } else if (const NameRow *row = find_common(name.text)) {
        out.from = row->from;
        out.type = row->type;
    } else {
        return Unexpected(expression.complaint(name.column, format("{} has no {}", place.describe(), name.text),
                                               known_names(place, name.text)));
    }
    if (name.steps.empty()) return out;
    if (!kernel || out.type.id == 0)
        return Unexpected(expression.complaint(name.steps.front().column, format("the members of {} aren't known", name.text),
                                               "only BTF knows them: of a kernel function's arguments"));
    TRY(MemberWalk(expression, *kernel, out).run(name));
    return out;
}

} // namespace rawbpf::inline v0::trace
