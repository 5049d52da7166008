// Puts an explanation together: the walk, what the loader says of the refusal, the chain of causes, the path, the remedy.
#include "programs/explain/explanation.h"

#include <cerrno>
#include <utility>

#include "runtime/kernel/program_error.h"

namespace rawbpf::inline v0::explain {

Explanation explain(const ObjectSpec &spec, const ProgramSpec &program, Trace trace, const btf::Btf *types) {
    Explanation out{spec, program, ProgramPlaces(spec, program), std::move(trace), {}, {}, {}, {}, {}};
    if (out.trace.outcome != verifier::Outcome::refused) return out;
    {
        const KeepRefusal keep(out.refusal);
        (void)explain_refusal(spec, program, types, Error(Errc::rejected, EACCES, std::string()), out.trace.log);
    }
    out.path = out.trace.path_to(out.trace.last);
    out.chain = causes_of(out.trace, program, out.path, out.refusal);
    out.shortest = shortest_path(out.trace, out.path, out.chain);
    out.remedy = remedy_of(out.trace, spec, program, out.places, out.refusal, out.chain, out.path);
    return out;
}

} // namespace rawbpf::inline v0::explain
