// Takes fields that are needed from the virtual machine's tables, and says which one is missing. PURE.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "programs/languages/hotspot/vm_structs.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::languages::hotspot {

/// Each takes the first of `names` that there is. False: there is none, and `why` says so.
class Fields {
  public:
    Fields(const VmStructs &structs, std::string &why) : structs_(structs), why_(why) {}
    bool take(Number &into, std::string_view type, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names)
            if (const auto found = structs_.field(type, name)) {
                into = *found;
                return true;
            }
        return missing(type, *names.begin());
    }
    bool take_offset(uint64_t &into, std::string_view type, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names)
            if (const auto found = structs_.offset(type, name)) {
                into = *found;
                return true;
            }
        return missing(type, *names.begin());
    }
    bool take_size(uint64_t &into, std::string_view type) {
        const auto found = structs_.size(type);
        if (!found) return missing(type, "its size");
        into = *found;
        return true;
    }
    bool missing(std::string_view type, std::string_view name) {
        why_ = format("the virtual machine's tables don't have {}: {}", type, name);
        return false;
    }

  private:
    const VmStructs &structs_;
    std::string &why_;
};

} // namespace rawbpf::inline v0::languages::hotspot
