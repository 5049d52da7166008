// A signature is read as Go's, and where it isn't that, as C's: that says how wide each word is, and Go where it stands.
//
// Returns are probed at the function's return instructions: a return address that isn't its own would end the program as soon as
// the runtime moves the stack. And its beginning is behind the stack check, which a function that has no room, or has to let
// others run, comes to twice:
//
//      cmp 16(r14), rsp; jbe --------.      the probe at the call
//      ...                     <-.   |
//      ret                       |   |      the probes at the return: one for each
//      call runtime.morestack  <-----'
//      jmp (the first instruction)
//
// Assembly is still called by the old convention, with everything on the stack; the linker marks it: runtime.memmove.abi0.
#include "programs/trace/go_place.h"

#include "asm/builder.h"
#include "programs/trace/go_debug_info.h"
#include "programs/trace/go_values.h"
#include "runtime/base/format.h"
#include "runtime/elf/go_build_info.h"
#include "runtime/link/return_instructions.h"

namespace rawbpf::inline v0::trace {
namespace {

// What no declaration of C's has in it.
bool looks_like_go(std::string_view text) {
    for (const std::string_view word :
         {"string", "[]", "error", "func", "interface", "any", "map[", "chan ", "uint", "float", "byte"})
        if (text.find(word) != std::string_view::npos) return text.find("_t") == std::string_view::npos;
    return false;
}

} // namespace

Result<GoProgram> GoProgram::open(const UserFunctions &file, const std::string &signature) {
    GoProgram out;
    out.file_ = file;
    if (const std::optional<std::string> version = elf::go_version(file.elf(), file.image()))
        out.in_registers_ = go_passes_in_registers(*version, kHostArch);
    struct Kept {
        explicit Kept(const UserFunctions &from) : file(from), names(file.elf(), file.image()) {}
        UserFunctions file;
        GoTypeNames names;
    };
    auto kept = std::make_shared<const Kept>(file);
    out.types_ = {kept, &kept->names};
    if (signature.empty()) return out;
    Result<GoSignature> go = parse_go_signature(signature);
    if (go) {
        out.go_ = std::move(*go);
        return out;
    }
    Result<Signature> c = parse_signature(signature);
    if (c) {
        out.c_ = std::move(*c);
        return out;
    }
    return Unexpected(in_context(std::move(looks_like_go(signature) ? go.error() : c.error()), "--sig"));
}

std::string GoProgram::read_types(const std::vector<UserFunction> &functions) {
    if (go_ || c_) return {};
    std::vector<uint64_t> addresses;
    for (const UserFunction &function : functions)
        if (const std::optional<uint64_t> address = file_.elf().address_of(function.offset)) addresses.push_back(*address);
    Result<std::unordered_map<uint64_t, GoSignature>> found = read_go_signatures(file_.elf(), addresses);
    if (found) {
        known_ = std::move(*found);
        return {};
    }
    if (found.error().kind == Errc::not_found)
        return format("{}: no DWARF says what its functions take (-ldflags=-w, strip); --sig does", file_.path());
    return format("what the functions take isn't known: {}", found.error().message());
}

bool GoProgram::describe(const UserFunction &function, bool returns, ProbeSite &place) const {
    const bool registers = in_registers_ && !function.symbol.ends_with(".abi0");
    const GoAbi abi = registers ? go_register_abi(kHostArch) : GoAbi{};
    GoCall call;
    const std::optional<uint64_t> address = known_.empty() ? std::nullopt : file_.elf().address_of(function.offset);
    const auto known = address ? known_.find(*address) : known_.end();
    if (known != known_.end()) {
        call = describe_go_call(known->second, abi, place.signature);
    } else if (go_) {
        call = describe_go_call(*go_, abi, place.signature);
    } else {
        if (c_) place.signature = *c_;
        call = describe_go_call(place.signature, abi);
    }
    call.goroutine = registers;
    call.types = types_;
    const Bytes image = file_.image();
    const bool inside = function.offset <= image.size() && function.size <= image.size() - function.offset;
    const Bytes code = inside ? image.subspan(function.offset, function.size) : Bytes{};
    call.entry = function.offset + go_stack_check(code, file_.elf().machine());
    std::optional<std::vector<uint64_t>> found;
    if (returns && !code.empty()) found = return_instructions(code, file_.elf().machine());
    if (found)
        for (const uint64_t at : *found) call.returns.push_back(function.offset + at);
    std::vector<uint64_t> probed = call.returns;
    probed.push_back(call.entry);
    for (const uint64_t offset : probed)
        if (const std::optional<uint64_t> at = file_.elf().address_of(offset)) call.probed.push_back(*at);
    place.go_call = std::make_shared<const GoCall>(std::move(call));
    return !returns || found;
}

} // namespace rawbpf::inline v0::trace
