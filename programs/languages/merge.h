// One stack of two: the thread's native frames, and the frames of the interpreter's own list.
//
//      native, leaf first      list, leaf first             together
//        memcpy                  add    \  group 2            memcpy
//        EVAL  ................. step   /                     add
//        sorted                                               step
//        EVAL  ................. key    -  group 1            sorted
//        main                    main                         key ...
//
// A function that evaluates stands for a group of the list: what it ran before it called native code that called it again. The
// groups and these functions are counted from the root: the leaf's may have one frame of the native side more, when it has just
// been called and isn't in the list yet. Counted from the leaf all others would be one off. Only where the native stack doesn't
// reach its root are they counted from the leaf. How well they agree says whether the result is proven. PURE.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rawbpf::inline v0::languages {

/// A frame of the list, leaf first.
struct ListFrame {
    uint32_t place;      ///< whose, for the result
    bool ends_group;     ///< the last of its group: native code called it
    bool hidden = false; ///< it only ends the group, and is no function
};

enum class Merged : uint8_t {
    equal,    ///< as many groups as functions that evaluate
    one_more, ///< one function more than groups, at the leaf: it had just been called
    one_less, ///< one group more than functions, at the leaf, of one frame, which native code is about to call or has called: it
              ///< isn't shown
    astray,   ///< they differ: frames are where they belong as far as can be told
};

/// Behind which frame of the list each group ends.
[[nodiscard]] inline std::vector<size_t> group_ends(std::span<const ListFrame> list) {
    std::vector<size_t> ends;
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i].ends_group) ends.push_back(i + 1);
    if (!list.empty() && (ends.empty() || ends.back() != list.size())) ends.push_back(list.size()); // it was cut
    return ends;
}

/// Takes the outermost frame off a list, if it only ends a group that has no others: what a thread begins with, called by nobody.
inline void drop_base(std::vector<ListFrame> &list) {
    const size_t size = list.size();
    if (size > 0 && list.back().hidden && list.back().ends_group && (size == 1 || list[size - 2].ends_group)) list.pop_back();
}

/// `evaluates[i]`: whether native frame i (leaf first) is a function that evaluates. `rooted`: the native stack reaches the
/// thread's first function. `early`: what native code calls is in the list before the function that evaluates is entered, and
/// until the native code has called it for the last time, as a comparison while a list is sorted. `native(i)` and `listed(place)`
/// are called for each frame of the result, leaf first.
template <class Native, class Listed> Merged merge(const std::vector<bool> &evaluates, std::span<const ListFrame> list,
                                                   bool rooted, bool early, Native &&native, Listed &&listed) {
    const std::vector<size_t> ends = group_ends(list);
    size_t functions = 0;
    for (const bool one : evaluates) functions += one;

    const size_t groups = ends.size();
    const auto group = [&](size_t number) {
        for (size_t i = number == 0 ? 0 : ends[number - 1]; i < ends[number]; ++i)
            if (!list[i].hidden) listed(list[i].place);
    };
    // Which group the leaf-most function that evaluates has: counted from the root, or from the leaf.
    const size_t extra = rooted && functions > groups ? functions - groups : 0; // functions without a group, at the leaf
    size_t next = rooted && groups > functions ? groups - functions : 0;        // groups without a function, at the leaf
    const bool one_less = rooted && early && next == 1 && ends[0] == 1;
    for (size_t i = 0; i < next && !one_less; ++i) group(i);
    size_t met = 0;
    for (size_t i = 0; i < evaluates.size(); ++i) {
        if (!evaluates[i] || met++ < extra || next >= groups)
            native(i);
        else
            group(next++);
    }
    while (next < groups) group(next++); // the native stack ended too early
    // One that calls others has long been in the list; it is in another one, then: a second interpreter's in the same thread.
    const bool at_leaf = std::find(evaluates.begin(), evaluates.end(), true) - evaluates.begin() <= 1;
    if (one_less) return Merged::one_less;
    return functions == groups ? Merged::equal : functions == groups + 1 && at_leaf ? Merged::one_more : Merged::astray;
}

} // namespace rawbpf::inline v0::languages
