// A student's copy has the text, the experiments and the exercise. Files in folders other than exercise/ are hidden.
#include "programs/lab/lesson.h"

#include <algorithm>
#include <sys/stat.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::lab {
namespace {

constexpr size_t kMostText = 1 << 20;

// "12..." -> 12, and the rest of the text; 0: no number.
uint32_t eat_number(std::string_view &text) {
    uint32_t out = 0;
    size_t at = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at < 4)
        out = out * 10 + static_cast<uint32_t>(text[at++] - '0');
    text.remove_prefix(at);
    return out;
}

bool is_regular(const std::string &path) {
    const Result<struct stat> st = sys::stat_file(path);
    return st && S_ISREG(st->st_mode);
}

} // namespace

bool parse_heading(std::string_view text, uint32_t &number, std::string_view &title) {
    constexpr std::string_view kBefore = "# ", kDot = " · ";
    if (!text.starts_with(kBefore)) return false;
    text = text.substr(0, text.find('\n'));
    text.remove_prefix(kBefore.size());
    number = eat_number(text);
    if (number == 0 || !text.starts_with(kDot)) return false;
    title = text.substr(kDot.size());
    return !title.empty();
}

uint32_t lesson_said(std::string_view text) {
    for (int line = 0; line < 5 && !text.empty(); ++line) {
        std::string_view now = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(now.size() + 1, text.size()));
        const size_t words = now.find_first_not_of("#/* ;\t");
        constexpr std::string_view kWord = "Lesson ";
        if (words == std::string_view::npos || words == 0 || !now.substr(words).starts_with(kWord)) continue;
        now.remove_prefix(words + kWord.size());
        return eat_number(now);
    }
    return 0;
}

Result<std::vector<Lesson>> all_lessons(const std::vector<std::string> &folders) {
    std::vector<Lesson> out;
    for (const std::string &folder : folders) {
        Result<std::vector<std::string>> names = sys::list_directory(folder);
        if (!names) continue;
        for (const std::string &name : *names) {
            const std::string text = folder + name + "/lesson.md";
            if (!sys::exists(text)) continue;
            const std::string source = TRY(sys::read_file(text, kMostText));
            Lesson lesson;
            std::string_view title;
            if (!parse_heading(source, lesson.number, title))
                return Unexpected(make_error(Errc::bad_input, format("{} doesn't begin with a title", text),
                                             "its first line is `# 3 · Maps`: a number, a dot in the middle, words"));
            lesson.title = title;
            lesson.name = name;
            lesson.folder = folder + name + "/";
            out.push_back(std::move(lesson));
        }
        if (!out.empty()) break;
    }
    if (out.empty()) return fail(Errc::not_found, "no lessons are installed here");
    std::sort(out.begin(), out.end(), [](const Lesson &a, const Lesson &b) { return a.number < b.number; });
    return out;
}

Result<Lesson> find_lesson(const std::vector<Lesson> &lessons, std::string_view word) {
    std::string_view rest = word;
    const uint32_t number = eat_number(rest);
    for (const Lesson &lesson : lessons)
        if ((rest.empty() && lesson.number == number) || lesson.name == word ||
            lesson.name.substr(std::min<size_t>(3, lesson.name.size())) == word)
            return lesson;
    return Unexpected(make_error(Errc::not_found, format("there is no lesson {}", word), "rawbpf lab list lists the lessons"));
}

Result<uint32_t> lesson_of(const std::string &folder) {
    const std::string path = folder + "/lesson.md";
    const std::string_view hint = "rawbpf lab start 1 DIR makes one; rawbpf lab check DIR checks what is in it";
    if (!is_regular(path))
        return Unexpected(make_error(Errc::bad_input, format("{} isn't the folder of a lesson: it has no file lesson.md", folder),
                                     std::string(hint)));
    const std::string text = TRY(sys::read_file(path, kMostText));
    uint32_t number = 0;
    std::string_view title;
    if (!parse_heading(text, number, title))
        return Unexpected(make_error(Errc::bad_input, format("{} doesn't begin with a lesson's title", path), std::string(hint)));
    return number;
}

Result<std::vector<Handout>> handouts(const Lesson &lesson) {
    std::vector<Handout> out;
    for (const std::string &name : TRY(sys::list_directory(lesson.folder)))
        if (is_regular(lesson.folder + name)) out.push_back({lesson.folder + name, name});
    const std::string exercise = lesson.folder + "exercise/";
    for (const std::string &name : TRY(sys::list_directory(exercise)))
        if (is_regular(exercise + name)) out.push_back({exercise + name, name});
    std::sort(out.begin(), out.end(), [](const Handout &a, const Handout &b) { return a.name < b.name; });
    return out;
}

Result<std::string> exercise_in(const std::string &folder) {
    std::string found;
    for (const std::string &name : TRY(sys::list_directory(folder))) {
        if (!name.starts_with("lab.") || name.ends_with("~") || name.ends_with(".o") || name.ends_with(".swp")) continue;
        if (!found.empty())
            return Unexpected(make_error(
                Errc::bad_input,
                format("{} has {} and {}: which is the exercise?", folder, std::min(name, found), std::max(name, found)),
                "give the other one a name that doesn't begin with lab."));
        found = name;
    }
    if (found.empty())
        return Unexpected(make_error(Errc::bad_input, format("{} has no file lab.*, which is the exercise", folder),
                                     "rawbpf lab start N DIR gives it anew, in another folder"));
    return found;
}

} // namespace rawbpf::inline v0::lab
