// Texts: names of processes, what a char * points to, fields of records. They go where they are kept, without a copy in between;
// to be compared they are on the stack, eight bytes at a time.
#include <algorithm>
#include <cstring>

#include "programs/experiment/compiling.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::experiment {

using trace::Operator;

namespace {
constexpr uint32_t kCommBytes = 16, kTextBytes = 64, kMostTextBytes = 4096, kMostCompared = 64, kProbeBytes = 32,
                   kWordsBytes = 128;
uint32_t rounded(uint64_t size) { return static_cast<uint32_t>((size + 7) / 8 * 8); }
} // namespace

bool ProbeCode::text_type(const Expr &e, Typed &out) {
    out = {};
    out.text = true;
    out.show = Show::text;
    switch (e.kind) {
    case Expr::Kind::text: out.size = rounded(e.text.size() + 1); return true;
    case Expr::Kind::call: {
        if (e.text == "cast") {
            out.size = kTextBytes;
            return true;
        }
        if (e.text == "ip6") {
            if (e.args.size() != 1) return fail(e.at, "ip6 takes one value: an address, or a field of 16 bytes");
            out.show = Show::ip6;
            out.size = 16;
            return true;
        }
        const bool words = e.text == "words";
        if (words && (e.args.size() < 2 || e.args.size() > 3))
            return fail(
                e.at,
                "words takes the first address, the end address and, optionally, the number of bytes: words(task->mm->arg_start, "
                "task->mm->arg_end, 200)");
        if (!words && (e.args.empty() || e.args.size() > 2))
            return fail(e.at, format("{} takes an address, and perhaps how many bytes: {}(arg0, 128)", e.text, e.text));
        out.size = words ? kWordsBytes : kTextBytes;
        if (words) out.show = Show::words;
        const size_t addresses = words ? 2 : 1;
        if (e.args.size() > addresses) {
            const std::optional<int64_t> size = constant(e.args[addresses]);
            if (!size || *size < 1 || *size > kMostTextBytes)
                return fail(e.args[addresses].at, format("a text has 1 to {} bytes", kMostTextBytes));
            out.size = rounded(static_cast<uint64_t>(*size));
        }
        for (size_t i = 0; i < addresses; ++i) {
            Typed inner;
            if (!infer(e.args[i], inner)) return false;
            if (inner.text) return fail(e.args[i].at, "this is a text already");
        }
        return true;
    }
    default: break;
    }
    if (e.text == "comm" && e.steps.empty()) {
        out.size = kCommBytes;
        return true;
    }
    if (e.text == "probe" && e.steps.empty()) {
        out.size = kProbeBytes;
        return true;
    }
    trace::Value value;
    if (!resolve_name(e, value)) return false;
    out.size = value.type.show == trace::Show::characters ? rounded(std::max<uint32_t>(value.type.length, 1)) : kTextBytes;
    return true;
}

void ProbeCode::write_literal(const std::string &text, uint32_t size, Mem to) {
    for (uint32_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        if (at < text.size()) std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
        f_.load_imm64(r1, word);
        f_.store<uint64_t>(to + runtime(at), r1);
    }
}

// `to` gets the text and zeroes behind it, `type.size` bytes. Its register must survive calls.
bool ProbeCode::text_into(const Expr &e, const Typed &type, Mem to) {
    if (e.kind == Expr::Kind::text) {
        if (e.text.size() >= type.size)
            return fail(e.at, format("the text has {} bytes, and there is room for {}", e.text.size(), type.size - 1));
        write_literal(e.text, type.size, to);
        return true;
    }
    if (e.kind == Expr::Kind::name && e.steps.empty() && e.text == "probe") {
        write_literal(label_.substr(0, type.size - 1), type.size, to);
        return true;
    }
    // What is left of an earlier record, or of the stack, isn't part of the text: keys are compared whole.
    f_.mov(r1, 0);
    for (uint32_t at = 0; at < type.size; at += 8) f_.store<uint64_t>(to + runtime(at), r1);
    if (e.kind == Expr::Kind::map) {
        UsedMap *map = nullptr;
        if (!use_map(e, map)) return false;
        const Space key(*this, map->key_size);
        if (!make_key(e, *map, key.slot())) return false;
        const Label none = f_.label("none");
        f_.call(helper::map_lookup_elem, *map->ref, key.slot());
        f_.jump_if(r0 == 0, none);
        f_.mov(r3, r0);
        f_.mov(r2, runtime(std::min(type.size, map->value_size)));
        f_.address(r1, to);
        f_.call(helper::probe_read_kernel);
        f_.bind(none);
        return true;
    }
    if (e.kind == Expr::Kind::name && e.steps.empty() && e.text == "comm") {
        bool field = false;
        for (const trace::Parameter &parameter : site_.signature.parameters) field |= parameter.name == "comm";
        if (!field) {
            f_.mov(r2, static_cast<int32_t>(kCommBytes));
            f_.address(r1, to);
            f_.call(helper::get_current_comm);
            return true;
        }
    }
    if (e.kind == Expr::Kind::call && e.text == "ip6") return read_bytes(e.args[0], 16, to);
    if (e.kind == Expr::Kind::call && e.text == "words") return words_into(e, type.size, to);
    const bool kernel = !(e.kind == Expr::Kind::call && e.text == "str");
    if (e.kind == Expr::Kind::call && e.text != "cast") {
        if (!value(e.args[0])) return false;
        f_.mov(r3, r0);
    } else {
        trace::Value found;
        if (e.kind == Expr::Kind::call) {
            btf::TypeId id = 0;
            if (!cast_type(e, id) || !through(e, id, found)) return false;
        } else if (!resolve_name(e, found)) {
            return false;
        }
        if (found.reads.empty()) {
            const Mem field = r6 + runtime(site_.offsets[found.argument]);
            if (found.type.show == trace::Show::data_text) {
                f_.load<uint32_t>(r3, field);
                f_.and_(r3, 0xffff);
                f_.add(r3, r6);
            } else {
                f_.address(r3, field);
            }
        } else { // the array's address is what would be read last
            const uint64_t last = found.reads.back();
            trace::Value before = found;
            before.reads.pop_back();
            before.bit_size = 0;
            before.type.size = 8;
            before.type.is_signed = false;
            if (e.kind == Expr::Kind::call) {
                if (!value(e.args[0])) return false;
            } else if (const auto local = locals_.find(e.text); local != locals_.end()) {
                f_.load<uint64_t>(r0, local->second.slot);
            } else if (e.text == "task") {
                f_.call(helper::get_current_task);
            } else if (!argument(found, e.at)) {
                return false;
            }
            if (!follow(before)) return false;
            f_.mov(r3, r0);
            f_.load_imm64(r1, last);
            f_.add(r3, r1);
        }
    }
    f_.mov(r2, runtime(type.size));
    f_.address(r1, to);
    if (kernel)
        f_.call(helper::probe_read_kernel_str);
    else
        f_.call(helper::probe_read_user_str);
    return true;
}

// What lies between two addresses of the process, with the zeroes in it, as far as there is room for it and a zero at its end.
bool ProbeCode::words_into(const Expr &e, uint32_t size, Mem to) {
    const Space from(*this, 8);
    if (!value(e.args[0])) return false;
    f_.store<uint64_t>(from.slot(), r0);
    if (!value(e.args[1])) return false;
    f_.load<uint64_t>(r3, from.slot());
    f_.mov(r2, r0);
    f_.sub(r2, r3);
    const Label fits = f_.label("fits");
    f_.jump_if(r2 <= runtime(size - 1), fits);
    f_.mov(r2, runtime(size - 1));
    f_.bind(fits);
    f_.address(r1, to);
    f_.call(helper::probe_read_user);
    return true;
}

bool ProbeCode::read_bytes(const Expr &e, uint32_t size, Mem to) {
    trace::Value found;
    bool in_record = false;
    if (e.kind == Expr::Kind::name && locals_.find(e.text) == locals_.end() && e.text != "task") {
        if (!resolve_name(e, found)) return false;
        in_record = found.reads.empty() && found.type.length == size && !site_.offsets.empty() &&
                    found.from == trace::Value::From::argument;
    }
    if (in_record) {
        f_.address(r3, r6 + runtime(site_.offsets[found.argument]));
    } else {
        if (!value(e)) return false;
        f_.mov(r3, r0);
    }
    f_.mov(r2, runtime(size));
    f_.address(r1, to);
    f_.call(helper::probe_read_kernel);
    return true;
}

bool ProbeCode::compare_texts(const Expr &e, Label to, bool when) {
    const bool left_literal = e.args[0].kind == Expr::Kind::text;
    const Expr &literal = e.args[left_literal ? 0 : 1], &other = e.args[left_literal ? 1 : 0];
    if (literal.kind != Expr::Kind::text)
        return fail(e.at, "a text is only compared with one in quotes", "as in comm == \"cat\"");
    if (e.op != Operator::equal && e.op != Operator::not_equal) return fail(e.at, "texts are only compared by == and !=");
    if (literal.text.size() >= kMostCompared)
        return fail(literal.at, format("texts of more than {} bytes aren't compared", kMostCompared - 1));
    Typed type;
    if (!infer(other, type)) return false;
    if (!type.text || type.show != Show::text)
        return fail(other.at, "this is no text", "str(x) reads one of the process, kstr(x) one of the kernel");
    if (literal.text.size() >= type.size && other.kind == Expr::Kind::name)
        return fail(literal.at, format("`{}` has at most {} bytes", other.text, type.size - 1));
    const uint32_t compared = rounded(literal.text.size() + 1);
    type.size = std::max(std::min(type.size, kMostCompared), compared);
    const Space space(*this, type.size);
    if (!text_into(other, type, space.slot())) return false;
    const bool jump_if_equal = (e.op == Operator::equal) == when;
    const Label differ = f_.label("differ");
    for (uint32_t at = 0; at < compared; at += 8) {
        uint64_t word = 0;
        if (at < literal.text.size()) std::memcpy(&word, literal.text.data() + at, std::min<size_t>(8, literal.text.size() - at));
        f_.load<uint64_t>(r0, space.slot() + runtime(at));
        f_.load_imm64(r1, word);
        f_.jump_if(r0 != r1, jump_if_equal ? differ : to);
    }
    if (jump_if_equal) {
        f_.jump(to);
        f_.bind(differ);
    }
    return true;
}

} // namespace rawbpf::inline v0::experiment
