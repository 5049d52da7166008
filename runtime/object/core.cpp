// CO-RE, the whole: for each relocation, candidates in the target, what each comes to, and one answer.
//
//      relocation (type, access, kind)
//         |  local path and number                     core_path.cpp, core_value.cpp
//         v
//      candidates: the target's types of the same kind and name, flavours (task_struct___v2) aside: the kernel's, or where it
//         |        has none the modules'
//         v
//      those that fit: all must come to the same; two that disagree are an error, for there is no telling which one is meant
//         |
//         v
//      instruction rewritten, or poisoned where nothing fits
//
// As in libbpf, types that fitted once are the only candidates for later relocations of the same local type: a kernel may hold
// two task_structs, one of them a stub from another file, and the first field found tells them apart.
//
// The same relocation comes up many times, once for every copy of a subprogram: answers are kept by (type, access, kind), lists
// of candidates by local type and by name. Finding names in a kernel's BTF is the expensive step, so one scan finds all of them.
#include "runtime/object/core.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"
#include "runtime/object/core_field.h"
#include "runtime/object/core_path.h"
#include "runtime/object/core_value.h"

namespace rawbpf::inline v0 {

namespace object {
namespace {

/// The answer to one relocation, for every place that asks.
struct Answer {
    CoreResult result;
    std::string what;
    std::string why; ///< why it must be poisoned
    std::vector<CoreCandidate> candidates;
};

class Relocator {
  public:
    Relocator(const ObjectSpec &spec, const btf::Btf *local, const CoreTargets &targets, const CoreOptions &options,
              CoreReport &report)
        : spec_(spec), local_(local), finder_(targets), options_(options), report_(report) {}

    /// One scan of the kernel's BTF for all that the programs will ask for.
    Result<void> prepare() {
        if (!local_) return {};
        std::vector<btf::TypeId> roots;
        for (const ProgramSpec &program : spec_.programs)
            if (program.autoload)
                for (const CoreRelocation &relocation : program.core_relocations)
                    if (relocation.kind != static_cast<uint32_t>(CoreKind::type_id_local)) roots.push_back(relocation.type);
        stable_sort(roots);
        roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
        std::vector<std::string_view> names;
        for (btf::TypeId root : roots) {
            const auto type = local_->type(root); // a broken one is reported where it is used
            if (type && !type->name.empty()) names.push_back(btf::essential_name(type->name));
        }
        stable_sort(names);
        names.erase(std::unique(names.begin(), names.end()), names.end());
        return finder_.prepare(names);
    }

    Result<void> relocate(ProgramSpec &program) {
        for (const CoreRelocation &relocation : program.core_relocations) {
            if (relocation.insn >= program.insns.size())
                return fail(Errc::bad_input, "{}: program {}: a CO-RE relocation is for instruction {}, and there are only {}",
                            spec_.name, program.name, relocation.insn, program.insns.size());
            const Answer *answer = TRY_IN(find_answer(relocation), "{}: program {}: instruction {}: CO-RE {}", spec_.name,
                                          program.name, relocation.insn, core_kind_name(relocation.kind));
            TRY_IN(apply(program, relocation, *answer), "{}: program {}: instruction {}: CO-RE {} of {}", spec_.name,
                   program.name, relocation.insn, core_kind_name(relocation.kind), answer->what);
        }
        for (const FieldReference &reference : program.field_references)
            TRY_IN(apply(program, reference), "{}: program {}: instruction {}", spec_.name, program.name, reference.insn);
        return {};
    }

  private:
    Result<void> apply(ProgramSpec &program, const CoreRelocation &relocation, const Answer &answer) {
        Insn *insn = &program.insns[relocation.insn];
        const size_t left = program.insns.size() - relocation.insn;
        std::string why = answer.why;
        if (!answer.result.poison) why = TRY(core_patch(insn, left, answer.result));
        const bool poisoned = answer.result.poison || !why.empty();
        if (poisoned) poison(program, relocation.insn, why);
        ++(poisoned ? report_.poisoned : report_.relocated);
        if (!options_.details) return {};
        CoreOutcome outcome{
            program.name, relocation.insn, relocation.kind,  answer.what, answer.result.before.number, answer.result.after.number,
            poisoned,     std::move(why),  answer.candidates};
        report_.outcomes.push_back(std::move(outcome));
        return {};
    }

    Result<void> apply(ProgramSpec &program, const FieldReference &reference) {
        if (reference.insn >= program.insns.size())
            return fail(Errc::invalid_argument, "a reference to {} from an instruction that doesn't exist", reference.path);
        Insn *insn = &program.insns[reference.insn];
        const size_t left = program.insns.size() - reference.insn;
        FieldPlace place = TRY(find_field(reference.path, finder_));
        const uint64_t number = place.offset + static_cast<uint64_t>(reference.addend);
        if (place.why.empty() && !put_number(insn, left, number)) {
            if (insn->code == 0 || (insn->code & 0x07) >= 0x05) // a jump or call has no room for an offset
                return fail(Errc::invalid_argument, "opcode {:#x} can't hold the offset of {}", insn->code, reference.path);
            place.why = format("offset {} of {} doesn't fit in the instruction", static_cast<int64_t>(number), reference.path);
        }
        const bool poisoned = !place.why.empty();
        if (poisoned) poison(program, reference.insn, place.why);
        ++(poisoned ? report_.poisoned : report_.relocated);
        if (options_.details) {
            CoreOutcome outcome;
            outcome.program = program.name;
            outcome.insn = reference.insn;
            outcome.what = reference.path;
            outcome.after = number;
            outcome.poisoned = poisoned;
            outcome.why = place.why;
            report_.outcomes.push_back(std::move(outcome));
        }
        return {};
    }

    void poison(ProgramSpec &program, uint32_t insn, const std::string &why) {
        core_poison(&program.insns[insn], program.insns.size() - insn);
        program.poisoned.push_back({insn, why});
    }

    Result<const Answer *> find_answer(const CoreRelocation &relocation) {
        if (!local_) return fail(Errc::bad_input, "the object has no .BTF");
        const auto key = std::tuple(relocation.type, relocation.kind, relocation.access);
        auto known = answers_.find(key);
        if (known == answers_.end()) known = answers_.emplace(key, TRY(work_out(relocation))).first;
        return &known->second;
    }

    Result<Answer> work_out(const CoreRelocation &relocation) {
        Answer answer;
        const CorePath local = TRY(parse_core_path(*local_, relocation));
        answer.what = describe(local);
        if (local.kind == CoreKind::type_id_local) {
            answer.result = TRY(core_result(local, &local));
            return answer;
        }
        const btf::Type root = TRY(local_->type(relocation.type));
        if (root.name.empty()) return fail(Errc::bad_input, "{}: rawbpf can't search for an anonymous type", answer.what);

        std::vector<Candidate> &candidates = *TRY(candidates_of(root));
        std::vector<Candidate> fitting;
        CorePath found;
        Mismatch why, first_why;
        const btf::Btf *first_btf = nullptr;
        bool ambiguous = false;
        uint64_t first_bits = 0;
        for (const Candidate &candidate : candidates) {
            const bool fits = TRY(match_core_path(local, *candidate.btf, candidate.id, found, why));
            if (!fits) {
                if (!first_btf) first_why = why, first_btf = candidate.btf;
                if (options_.details) note(answer, candidate, false, describe(why, *candidate.btf));
                continue;
            }
            const CoreResult result = TRY(core_result(local, &found));
            note(answer, candidate, true, format("{}", static_cast<int64_t>(result.after.number)));
            if (fitting.empty()) {
                answer.result = result;
                first_bits = found.bit_offset;
            } else {
                ambiguous |= first_bits != found.bit_offset || result.poison != answer.result.poison ||
                             result.after.number != answer.result.after.number;
            }
            fitting.push_back(candidate);
        }
        if (ambiguous) return Unexpected(disagreement(answer));
        if (!options_.details) answer.candidates.clear();
        if (fitting.empty()) {
            answer.result = TRY(core_result(local, nullptr));
            answer.why = first_btf ? describe(first_why, *first_btf)
                                   : format("{} is unknown to this kernel", describe_type(*local_, relocation.type));
        } else if (fitting.size() < candidates.size()) {
            candidates = std::move(fitting);
        }
        return answer;
    }

    static void note(Answer &answer, const Candidate &candidate, bool fits, std::string why) {
        const auto type = candidate.btf->type(candidate.id);
        answer.candidates.push_back(
            {candidate.btf->name(), candidate.id, type ? std::string(type->name) : std::string(), fits, std::move(why)});
    }

    static Error disagreement(const Answer &answer) {
        std::string text = format("{}: the target's types disagree:", answer.what);
        for (const CoreCandidate &candidate : answer.candidates)
            if (candidate.fits)
                append(text, " [{}] {} in {} gives {};", candidate.type, candidate.name, candidate.btf, candidate.why);
        text.pop_back();
        return make_error(Errc::unsupported, std::move(text));
    }

    /// The target's types that a local root type may stand for.
    Result<std::vector<Candidate> *> candidates_of(const btf::Type &root) {
        auto known = candidates_.find(root.id);
        if (known != candidates_.end()) return &known->second;
        std::vector<Candidate> list = TRY(finder_.find(btf::essential_name(root.name), root.kind));
        return &candidates_.emplace(root.id, std::move(list)).first->second;
    }

    const ObjectSpec &spec_;
    const btf::Btf *local_;
    TypeFinder finder_;
    const CoreOptions &options_;
    CoreReport &report_;
    std::map<std::tuple<btf::TypeId, uint32_t, std::string>, Answer> answers_;
    std::map<btf::TypeId, std::vector<Candidate>> candidates_; // by local root type
};

} // namespace
} // namespace object

std::string_view core_kind_name(uint32_t kind) {
    constexpr std::string_view kNames[] = {"byte_off",       "byte_sz",       "field_exists",   "signed",      "lshift_u64",
                                           "rshift_u64",     "local_type_id", "target_type_id", "type_exists", "type_size",
                                           "enumval_exists", "enumval_value", "type_matches"};
    return kind < std::size(kNames) ? kNames[kind] : "?";
}

bool needs_core(const ObjectSpec &spec) {
    for (const ProgramSpec &program : spec.programs) {
        if (!program.autoload) continue;
        if (!program.field_references.empty()) return true;
        for (const CoreRelocation &relocation : program.core_relocations)
            if (relocation.kind != static_cast<uint32_t>(CoreKind::type_id_local)) return true;
    }
    return false;
}

bool has_core_relocations(const ObjectSpec &spec) {
    return std::any_of(spec.programs.begin(), spec.programs.end(), [](const ProgramSpec &program) {
        return program.autoload && (!program.core_relocations.empty() || !program.field_references.empty());
    });
}

Result<CoreReport> relocate_core(ObjectSpec &spec, const CoreTargets &targets, const CoreOptions &options) {
    CoreReport report;
    std::optional<btf::Btf> local;
    if (!spec.btf.empty()) local = TRY(btf::Btf::parse(spec.btf, format("{}: .BTF", spec.name)));
    object::Relocator relocator(spec, local ? &*local : nullptr, targets, options, report);
    TRY(relocator.prepare());
    for (ProgramSpec &program : spec.programs)
        if (program.autoload) TRY(relocator.relocate(program));
    return report;
}

Result<CoreReport> relocate_core(ObjectSpec &spec, std::span<const btf::Btf *const> targets, const CoreOptions &options) {
    std::span<const btf::Btf *const> modules = targets.empty() ? targets : targets.subspan(1);
    CoreTargets all;
    all.kernel = targets.empty() ? nullptr : targets[0];
    all.modules = [](void *context) { return *static_cast<std::span<const btf::Btf *const> *>(context); };
    all.context = &modules;
    return relocate_core(spec, all, options);
}

} // namespace rawbpf::inline v0
