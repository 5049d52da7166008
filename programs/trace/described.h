// What a recording says of probes and of their records, once each: so that who reads it needs neither the BTF nor the tracefs of
// the machine that it is from.
//
//      ProbeSite, Layout, Type ... --put--> payload --read--> the same, but for what only programs need
//
// Enumerations are numbered in the order they come; to who reads they are a BTF of their own (EnumReader).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "programs/recording/chunks.h"
#include "programs/trace/constants.h"
#include "programs/trace/go_values.h"
#include "programs/trace/probe.h"
#include "programs/trace/record.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::trace {

/// Constants::values and their names, from a recording.
struct OwnConstants {
    ConstantStyle style = ConstantStyle::bits;
    std::deque<std::string> names;
    std::vector<Constant> values, more;
    [[nodiscard]] Constants constants() const { return {style, values, more}; }
};
void put_constants(std::string &out, const Constants &constants);
[[nodiscard]] Result<std::shared_ptr<const OwnConstants>> read_constants(recording::Cursor &in);

/// What a BTF calls an enumeration in a file: its number there, plus one; 0: it is none. May write what it is.
using EnumNumber = std::function<uint32_t(btf::TypeId)>;

/// An enumeration, where `id` is one: its size and enumerators; else nothing is put.
[[nodiscard]] bool put_enum(std::string &out, const btf::Btf &from, btf::TypeId id);

/// Enumerations as a BTF, whose ids are their numbers in the file plus one.
class EnumReader {
  public:
    [[nodiscard]] Result<void> read(recording::Cursor &in);
    [[nodiscard]] uint32_t count() const { return count_; }
    /// All of them; `name` is for messages. It refers to this. Errors: broken BTF, which would be ours.
    [[nodiscard]] Result<btf::Btf> finish(const std::string &name);

  private:
    btf::Writer writer_;
    std::vector<std::byte> bytes_;
    uint32_t count_ = 0;
};

void put_type(std::string &out, const Type &type, const EnumNumber &enums);
/// `enums`: how many have been read.
[[nodiscard]] Result<Type> read_type(recording::Cursor &in, uint32_t enums);

void put_site(std::string &out, const ProbeSite &site, const EnumNumber &enums);
[[nodiscard]] Result<ProbeSite> read_site(recording::Cursor &in, uint32_t enums);

/// Columns and what is copied for them; no stacks, which a recording has apart.
void put_layout(std::string &out, const Layout &layout, const EnumNumber &enums);
/// With offsets of its own, as small as they can be.
[[nodiscard]] Result<Layout> read_layout(recording::Cursor &in, uint32_t enums);

/// Names of a Go program's types that a recording brought along.
class RecordedGoTypes : public GoTypes {
  public:
    void add(uint64_t address, std::string name) { names_[address] = std::move(name); }
    [[nodiscard]] std::string name(uint64_t address) const override {
        const auto at = names_.find(address);
        return at == names_.end() ? std::string() : at->second;
    }

  private:
    std::unordered_map<uint64_t, std::string> names_;
};

} // namespace rawbpf::inline v0::trace
