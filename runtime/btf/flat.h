// Every type within one step. Private to the room.
//
// A Btf walks to a type from its nearest signpost, which is right for the twenty types that a tool looks at. Whoever prints or
// merges all of them goes back and forth between them a million times, and pays eight bytes a type for one pointer each. Building
// this checks once what Btf checks at each use: that names lie inside the strings and ids inside the types. So nothing fails
// afterwards.
#pragma once

#include "runtime/btf/state.h"

namespace rawbpf::inline v0::btf {

class Flat {
  public:
    /// Errors (bad_input): a name or id that leads nowhere, naming the type. The Btf's bytes must outlive it.
    [[nodiscard]] static Result<Flat> make(const Btf &btf);

    [[nodiscard]] TypeId first_id() const { return first_; } ///< of this BTF's own types
    [[nodiscard]] TypeId end_id() const { return static_cast<TypeId>(at_.size()); }
    [[nodiscard]] const std::string &name() const { return state_->name; }

    /// Any id below end_id().
    [[nodiscard]] Kind kind(TypeId id) const { return id == 0 ? Kind::void_ : static_cast<Kind>(kind_in(info(id))); }
    [[nodiscard]] bool kind_flag(TypeId id) const { return info(id) >> 31; }
    [[nodiscard]] uint32_t vlen(TypeId id) const { return vlen_in(info(id)); }
    [[nodiscard]] uint32_t info(TypeId id) const { return word(at_[id] + 4); }
    [[nodiscard]] uint32_t name_offset(TypeId id) const { return word(at_[id]); }
    [[nodiscard]] std::string_view type_name(TypeId id) const { return text(name_offset(id)); }
    [[nodiscard]] bool anonymous(TypeId id) const { return type_name(id).empty(); }
    [[nodiscard]] uint32_t size(TypeId id) const { return word(at_[id] + 8); }
    [[nodiscard]] TypeId target(TypeId id) const { return word(at_[id] + 8); }
    [[nodiscard]] const std::byte *extra(TypeId id) const { return at_[id] + kTypeHeader; }
    /// The number-th 32-bit word of what follows the fixed part.
    [[nodiscard]] uint32_t extra_word(TypeId id, size_t number) const { return word(extra(id) + number * 4); }

    [[nodiscard]] Member member(TypeId id, uint32_t index) const {
        const std::byte *at = extra(id) + size_t{index} * 12;
        const uint32_t offset = word(at + 8);
        const bool bits = kind_flag(id);
        return {text(word(at)), word(at + 4), bits ? offset & 0xffffff : offset, bits ? offset >> 24 : 0};
    }
    [[nodiscard]] EnumValue enum_value(TypeId id, uint32_t index) const;
    [[nodiscard]] Param param(TypeId id, uint32_t index) const {
        const std::byte *at = extra(id) + size_t{index} * 8;
        return {text(word(at)), word(at + 4)};
    }
    [[nodiscard]] Array array(TypeId id) const { return {extra_word(id, 0), extra_word(id, 1), extra_word(id, 2)}; }
    [[nodiscard]] IntEncoding int_encoding(TypeId id) const;

    [[nodiscard]] std::string_view text(uint32_t offset) const { return state_->string_at(offset).value_or(std::string_view()); }
    [[nodiscard]] uint32_t word(const std::byte *at) const { return state_->word(at); }

  private:
    std::shared_ptr<const Btf::State> state_;
    std::vector<const std::byte *> at_; // by id; [0] is nullptr
    TypeId first_ = 1;
};

/// const, volatile, restrict or a type tag.
[[nodiscard]] inline bool is_modifier(Kind kind) {
    return kind == Kind::const_ || kind == Kind::volatile_ || kind == Kind::restrict_ || kind == Kind::type_tag;
}
/// A modifier or a typedef: size_or_type is the type that it stands for.
[[nodiscard]] inline bool stands_for_another(Kind kind) { return is_modifier(kind) || kind == Kind::typedef_; }
[[nodiscard]] inline bool is_composite(Kind kind) { return kind == Kind::struct_ || kind == Kind::union_; }
[[nodiscard]] inline bool is_enumeration(Kind kind) { return kind == Kind::enum_ || kind == Kind::enum64; }
/// Whether size_or_type is a type.
[[nodiscard]] bool refers(Kind kind);

} // namespace rawbpf::inline v0::btf
