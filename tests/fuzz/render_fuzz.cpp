// The renderers: whatever bytes comms, symbols and paths are made of, each format keeps its promise to its readers. folded: every
// line ends in a count, and the counts add up. folded-ext: six words. json: a line an object, of valid UTF-8. svg: well-formed
// XML. perf-script: nothing but headers, frames and empty lines. speedscope: one line of UTF-8. pprof: something.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "programs/render/tool_formats.h"

using namespace rawbpf;
using namespace rawbpf::render;

namespace {

// Cuts the input into strings at a length byte each.
struct Words {
    std::string_view left;
    std::string next() {
        if (left.empty()) return {};
        size_t n = std::min<size_t>(static_cast<unsigned char>(left[0]) % 24, left.size() - 1);
        std::string word(left.substr(1, n));
        left.remove_prefix(1 + n);
        return word;
    }
    unsigned byte() {
        if (left.empty()) return 0;
        unsigned b = static_cast<unsigned char>(left[0]);
        left.remove_prefix(1);
        return b;
    }
};

void require(bool good) {
    if (!good) std::abort();
}

std::vector<std::string> lines(std::string_view text) {
    require(text.empty() || text.back() == '\n');
    std::vector<std::string> out;
    while (!text.empty()) {
        size_t end = text.find('\n');
        out.emplace_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    return out;
}

bool valid_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        auto c = static_cast<unsigned char>(text[i]);
        size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
        if (n == 0 || i + n > text.size()) return false;
        for (size_t k = 1; k < n; ++k)
            if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
        i += n;
    }
    return true;
}

// Enough of XML to notice a name that got out of its place: tags balance, attributes are quoted, no stray < or &.
void check_xml(std::string_view text) {
    std::vector<std::string_view> open;
    require(valid_utf8(text));
    for (size_t i = 0; i < text.size();) {
        require(static_cast<unsigned char>(text[i]) >= 0x20 || text[i] == '\n' || text[i] == '\t');
        if (text[i] == '&') {
            size_t end = text.find(';', i);
            require(end != text.npos && end - i <= 6);
            i = end + 1;
        } else if (text.substr(i).starts_with("<![CDATA[")) {
            i = text.find("]]>", i);
            require(i != text.npos);
            i += 3;
        } else if (text.substr(i).starts_with("<?")) {
            i = text.find("?>", i) + 2;
        } else if (text[i] == '<') {
            bool closing = text[i + 1] == '/';
            size_t name = i + 1 + closing, at = text.find_first_of(" />", name);
            require(at != text.npos && at > name);
            std::string_view tag = text.substr(name, at - name);
            for (char quote = 0; quote || text[at] != '>'; ++at) {
                require(at + 1 < text.size() && text[at] != '<');
                if (text[at] == '"') quote = quote ? 0 : '"';
            }
            if (closing) {
                require(!open.empty() && open.back() == tag);
                open.pop_back();
            } else if (text[at - 1] != '/') {
                open.push_back(tag);
            }
            i = at + 1;
        } else {
            ++i;
        }
    }
    require(open.empty());
}

std::string render_all(Format format, const std::vector<NamedSample> &samples, bool stacks) {
    std::string text;
    Writer out(text);
    auto renderer = make_any_renderer(format, {.stacks = stacks, .delimiter = stacks}, out);
    if (!renderer) return {};
    RunInfo run;
    if (!samples.empty()) run.command = {samples[0].comm, "--", samples.back().comm};
    (*renderer)->begin(run);
    for (const NamedSample &sample : samples) (*renderer)->sample(sample);
    (*renderer)->end({});
    return text;
}

// Five words without a space in them, then the frames, which neither begin nor end with one.
void check_six_words(std::string_view line) {
    for (int field = 0; field < 5; ++field) {
        size_t space = line.find(' ');
        require(space != line.npos && space > 0);
        line.remove_prefix(space + 1);
    }
    require(!line.empty() && line.front() != ' ' && line.back() != ' ');
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Words words{{reinterpret_cast<const char *>(data), size}};
    std::vector<FramePtr> frames;
    for (unsigned n = words.byte() % 8 + 1; n > 0; --n) {
        auto frame = std::make_shared<Frame>();
        frame->symbol = words.next();
        frame->module = words.next();
        frame->kernel = words.byte() & 1;
        frames.push_back(frame);
    }
    std::vector<NamedSample> samples;
    while (!words.left.empty() && samples.size() < 32) {
        NamedSample &s = samples.emplace_back();
        s.comm = words.next();
        s.user_missed = words.byte() & 1;
        for (unsigned n = words.byte() % 6; n > 0; --n) {
            const FramePtr &frame = frames[words.byte() % frames.size()];
            (frame->kernel ? s.kernel : s.user).push_back(frame);
        }
    }

    uint64_t sum = 0;
    std::string folded = render_all(Format::folded, samples, false);
    for (const std::string &line : lines(folded)) {
        size_t space = line.rfind(' ');
        require(space != line.npos && space > 0 && space + 1 < line.size());
        require(line.find_first_not_of("0123456789", space + 1) == line.npos);
        sum += std::strtoull(line.c_str() + space + 1, nullptr, 10);
    }
    require(sum == samples.size());
    std::string ext = render_all(Format::folded_ext, samples, false);
    for (const std::string &line : lines(ext)) check_six_words(line);
    require(lines(ext).size() == samples.size());
    require(lines(render_all(Format::table, samples, false)).size() == samples.size() + 1);
    for (const std::string &line : lines(render_all(Format::table, samples, true))) require(line.find('\x1b') == line.npos);
    std::string json = render_all(Format::json, samples, false);
    if (!json.empty()) require(lines(json).size() == samples.size() + 2 && valid_utf8(json));
    for (const std::string &line : lines(json)) require(line.front() == '{' && line.back() == '}');
    check_xml(render_all(Format::svg, samples, false));
    size_t records = 0;
    for (const std::string &line : lines(render_all(Format::perf_script, samples, false))) {
        if (line.empty())
            ++records;
        else if (line.front() == '\t')
            require(line.back() == ')' && line.rfind(" (") != line.npos && line.find(')', line.rfind(" (")) == line.size() - 1);
        else
            require(line.ends_with(" cpu-clock: ") && line.find(' ') == line.find_first_of(" \t"));
    }
    require(records == samples.size());
    for (const Format format : {Format::speedscope, Format::firefox}) {
        const std::string text = render_all(format, samples, false);
        if (!text.empty()) require(lines(text).size() == 1 && valid_utf8(text) && text.front() == '{');
    }
    require(!render_all(Format::pprof, samples, false).empty());
    require(render_all(Format::top, samples, false).find('\x1b') == std::string::npos);
    return 0;
}
