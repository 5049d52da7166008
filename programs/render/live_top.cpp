// The samples of the last ten seconds are kept, some thousands, and each screen is the top format's of them: what a screen says
// and what `-f top` says of the same samples can't differ.
#include "programs/render/live_top.h"

#include <algorithm>

#include "programs/render/ledger.h"
#include "programs/render/renderer.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::render {

void LiveTop::add(const NamedSample &sample) {
    if (recent_.size() == kMost) recent_.pop_front();
    recent_.push_back(sample);
}

std::string LiveTop::screen(uint64_t now_ns, uint64_t samples, size_t rows, size_t columns) {
    const uint64_t from = now_ns > kWindowNs ? now_ns - kWindowNs : 0;
    std::erase_if(recent_, [&](const NamedSample &sample) { return sample.t_ns < from; });
    std::string table;
    Writer out(table);
    const std::unique_ptr<Renderer> top = make_top({}, out);
    top->begin({});
    for (const NamedSample &sample : recent_) top->sample(sample, sample.weight);
    top->end({});

    const double seconds = static_cast<double>(now_ns) / 1e9;
    std::string text = cut(format("{}; of the last {:.0f} s, {}:   (Ctrl-C ends it)",
                                  progress_text(seconds, samples, 0).substr(0, progress_text(seconds, samples, 0).rfind("  ")),
                                  static_cast<double>(now_ns - from) / 1e9, grouped(recent_.size())),
                           columns);
    size_t used = 1;
    for (std::string_view rest = table; !rest.empty() && used < rows; ++used) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        text += '\n';
        text += cut(rest.substr(0, end), columns);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return text;
}

} // namespace rawbpf::inline v0::render
