// Lists and trees of objects that the program allocates.
//
//      struct node { int n; struct bpf_rb_node link; };
//      struct bpf_rb_root root __contains(node, link);      in a map's value or an object, beside a lock
//
//      n = bpf_obj_new(...)            n is owned: the program must release it
//      bpf_spin_lock(&lock)
//      bpf_rbtree_add(&root, &n->link) the tree owns it: n is shared, valid while the lock is held
//      bpf_spin_unlock(&lock)          n is invalid
//
// A program that removes a node owns it again. A tag at the member says what a root contains ("contains:node:link").
#include "runtime/verifier/engine.h"

namespace rawbpf::inline v0::verifier {

namespace {

std::string_view root_word(bool list) { return list ? "bpf_list_head" : "bpf_rb_root"; }
std::string_view node_word(bool list) { return list ? "bpf_list_node" : "bpf_rb_node"; }

} // namespace

// The part of a value or an object that lies at an offset.
const KernelPart *Engine::part_at(const Value &value, int64_t off, std::string_view name) {
    parts_ = value.sort == Sort::map_value ? types_.parts[value.map] : types_.parts_of_type(value.type);
    for (const KernelPart &part : parts_)
        if (part.name == name && off == part.offset) return &part;
    return nullptr;
}

bool Engine::graph_root(KernelCall &call, uint32_t number, bool list) {
    const unsigned reg = number + 1;
    const Value value = state_.reg(reg);
    const bool own = value.sort == Sort::object && value.owned && !value.shared && !value.maybe_null;
    if ((value.sort != Sort::map_value || value.maybe_null) && !own)
        return refuse("arg#{} expected pointer to map value or allocated object", number);
    if (own && !value.ref) return refuse("allocated object must be referenced");
    if (!value.bounds.is_known())
        return refuse("R{} doesn't have constant offset. {} has to be at the constant offset", reg, root_word(list));
    const int64_t off = value.off + static_cast<int64_t>(value.bounds.number());
    const KernelPart *root = part_at(value, off, root_word(list));
    if (!root) return refuse("{} not found at offset={}", root_word(list), off);
    const int lock = own ? types_.lock_of_type(value.type) : types_.lock_of(value.map);
    const uint32_t owner = own ? UINT32_MAX : value.map;
    if (!state_.lock || state_.lock_map != owner || state_.lock != value.id) {
        const std::string words = format("bpf_spin_lock at off={} must be held for {}", lock, root_word(list));
        if (state_.lock) return refuse("held lock and object are not in the same allocation; {}", words);
        return refuse_text(words);
    }
    call.node_type = root->contains;
    call.node_off = root->node_offset;
    return true;
}

bool Engine::graph_node(KernelCall &call, uint32_t number, bool list) {
    const unsigned reg = number + 1;
    const Value value = state_.reg(reg);
    const bool removes = call.name == "bpf_rbtree_remove";
    const bool looks = call.name == "bpf_rbtree_left" || call.name == "bpf_rbtree_right";
    if (removes || looks) {
        if (value.sort != Sort::object || !value.owned || !value.shared || value.ref)
            return refuse("{} node input must be non-owning ref", removes ? std::string("rbtree_remove") : call.name);
        if (in_tree_callback()) return refuse("{} not allowed in rbtree cb", removes ? std::string("rbtree_remove") : call.name);
    } else {
        if (value.sort != Sort::object || !value.owned || value.shared || value.maybe_null || value.per_cpu)
            return refuse("arg#{} expected pointer to allocated object", number);
        if (!value.ref) return refuse("allocated object must be referenced");
        call.given = value.ref;
    }
    if (!value.bounds.is_known() || value.bounds.number() != 0)
        return refuse("R{} doesn't have constant offset. {} has to be at the constant offset", reg, node_word(list));
    if (!part_at(value, value.off, node_word(list))) return refuse("{} not found at offset={}", node_word(list), value.off);
    const std::string wanted = std::string(type_name(*types_.own(), call.node_type));
    if (value.type != call.node_type)
        return refuse("operation on {} expects arg#1 {} at offset={} in struct {}, but arg is at offset={} in struct {}",
                      root_word(list), node_word(list), call.node_off, wanted, value.off, object_name(value));
    if (value.off != static_cast<int32_t>(call.node_off))
        return refuse("arg#1 offset={}, but expected {} at offset={} in struct {}", value.off, node_word(list), call.node_off,
                      wanted);
    return true;
}

// What the root's functions give: the node in its object.
Value Engine::graph_answer(const KernelCall &call, bool shared) {
    Value value = pointer(Sort::object, node());
    value.owned = true;
    value.type = call.node_type;
    value.off = static_cast<int32_t>(call.node_off);
    value.shared = shared;
    return value;
}

// The list or the tree owns it now.
void Engine::give_away(ValueId ref) {
    std::erase_if(state_.references, [ref](const Reference &r) { return r.id == ref; });
    state_.each_value([ref](Value &value) {
        if (value.ref != ref) return;
        value.ref = 0;
        if (value.sort == Sort::object) value.shared = true;
    });
}

bool Engine::in_tree_callback() const {
    for (const Frame &frame : state_.frames)
        if (frame.kind == CallKind::callback && insns_[frame.call].src == 2) return true;
    return false;
}

// bpf_rbtree_add(): the function that says which of two nodes is less.
bool Engine::compare_nodes(const KernelCall &call) {
    std::array<Value, 6> arguments;
    arguments[1] = graph_answer(call, true);
    arguments[2] = graph_answer(call, true);
    return call_back(call.callback, arguments);
}

} // namespace rawbpf::inline v0::verifier
