// The types of a unit's functions in BTF. Private to runtime/object.
//
//      program             int p(void *ctx)          global; its types aren't looked at
//      function            int f(void)               static: verified wherever it is called, whatever its arguments are
//      function global 2   int f(u64 a1, u64 a2)     global: verified once, with arguments that are any numbers
//      function global 1 64   int f(u8 (*a1)[64])    global: of the first is known that so many bytes are there, or that it is 0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "asm/unit.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::object {

class FunctionTypes {
  public:
    void start(btf::Writer &types, btf::TypeId int32) {
        int32_ = int32;
        program_ = types.add_func_proto(int32, {{"ctx", types.add_ptr(0)}});
        function_ = types.add_func_proto(int32, {});
    }
    /// The FUNC of that name.
    btf::TypeId add(btf::Writer &types, const Function &function, std::string_view name) {
        const bool program = !function.section.empty();
        btf::TypeId proto = program ? program_ : function_;
        if (!program && function.global && function.arguments > 0) {
            constexpr std::string_view kNames[] = {"a1", "a2", "a3", "a4", "a5"};
            if (uint64_ == 0) uint64_ = types.add_int("u64", 8, false);
            std::vector<std::pair<std::string_view, btf::TypeId>> arguments;
            for (uint8_t n = 0; n < function.arguments && n < std::size(kNames); ++n) arguments.emplace_back(kNames[n], uint64_);
            if (function.pointed != 0) arguments[0].second = pointer(types, function.pointed);
            proto = types.add_func_proto(int32_, arguments);
        }
        return types.add_func(name, proto, program || function.global); // BTF_FUNC_GLOBAL
    }

  private:
    btf::TypeId pointer(btf::Writer &types, uint32_t bytes) {
        if (uint8_ == 0) uint8_ = types.add_int("u8", 1, false);
        return types.add_ptr(types.add_array(uint8_, int32_, bytes));
    }

    btf::TypeId int32_ = 0, uint64_ = 0, uint8_ = 0, program_ = 0, function_ = 0;
};

} // namespace rawbpf::inline v0::object
