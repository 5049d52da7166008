// The flame graph as a class: svg.cpp draws it, and a differential one (differential.cpp) colours it otherwise.
#pragma once

#include <string>
#include <vector>

#include "programs/render/renderer.h"
#include "programs/render/stack_tree.h"

namespace rawbpf::inline v0::render {

class FlameGraph : public Renderer {
  public:
    FlameGraph(const RenderOptions &options, Writer &out)
        : out_(out), title_(options.title), icicle_(options.icicle), tree_({.modules = true, .threads = options.threads}) {}

    void begin(const RunInfo &run) override { run_ = run; }
    void sample(const NamedSample &sample, uint64_t count) override { tree_.add(sample, count); }
    void end(const Ledger &ledger) override;

  protected:
    struct Box {
        uint32_t node;
        uint32_t depth;
        uint64_t x; ///< first sample
    };
    /// A frame's colour: a class of the style sheet. `plain`: what it is by itself.
    virtual std::string color(const Box &, std::string &&plain) const { return std::move(plain); }
    /// More about a frame, on a line of its own; nothing: "".
    [[nodiscard]] virtual std::string remark(const Box &) const { return {}; }
    virtual void legends(std::string &text) const;
    [[nodiscard]] virtual std::string_view style() const { return {}; }
    [[nodiscard]] virtual std::string kind_of_graph() const;
    [[nodiscard]] virtual std::string subtitle(const Ledger &ledger) const;
    /// "1 sample", "12,000 page-faults".
    [[nodiscard]] std::string counted(uint64_t count) const;
    static void legend(std::string &text, int x, std::string_view color, std::string_view label);

    Writer &out_;
    std::string title_;
    bool icicle_;
    RunInfo run_;
    StackTree tree_;
    std::vector<uint64_t> total_;

  private:
    void lay_out();
    void open(const std::string &title);
    void head(const std::string &title, const Ledger &ledger);
    void foot();
    [[nodiscard]] std::string default_title() const;
    void frame(const Box &box);

    std::vector<Box> boxes_;
    uint64_t left_out_ = 0;
    double height_ = 0;
};

} // namespace rawbpf::inline v0::render
