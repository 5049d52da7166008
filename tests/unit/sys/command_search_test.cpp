// Which file a command's name stands for: files in a temporary folder, looked at as the kernel has them.
#include "runtime/sys/command_search.h"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "tests/support/folder.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

using Is = sys::Candidate::Is;

/// Two folders, /a and /b, and what is in them.
struct Tree {
    test::Folder folder;
    std::string a = folder.path + "/a", b = folder.path + "/b";
    Tree() {
        mkdir(a.c_str(), 0755);
        mkdir(b.c_str(), 0755);
        file(b, "here",
             "\x7f"
             "ELF\x02\x01\x01" +
                 std::string(9, '\0'),
             0755);
        file(a, "no-rights", "#!/bin/sh\n", 0644);
        file(b, "no-rights", "#!/bin/sh\n", 0755);
        mkdir((a + "/folder").c_str(), 0755);
        file(b, "folder", "echo without the first line\n", 0755);
        file(a, "only-no-rights", "#!/bin/sh\n", 0644);
        file(b, "empty", "", 0755);
    }
    static void file(const std::string &folder, const std::string &name, const std::string &text, mode_t mode) {
        const std::string path = folder + "/" + name;
        std::ofstream(path) << text;
        REQUIRE(chmod(path.c_str(), mode) == 0);
    }
    [[nodiscard]] bool executes() const { return access((b + "/here").c_str(), X_OK) == 0; }
};

std::vector<Is> search(const std::string &name, const std::string &path) {
    std::vector<sys::Candidate> found = sys::candidates(name, path);
    sys::look_at(found);
    std::vector<Is> out;
    for (const sys::Candidate &one : found) out.push_back(one.is);
    return out;
}

std::vector<std::string> files(const std::string &name, const std::string &path) {
    std::vector<std::string> out;
    for (const sys::Candidate &one : sys::candidates(name, path)) out.push_back(one.path);
    return out;
}

} // namespace

TEST_CASE("command search: the files that a name may stand for") {
    using Files = std::vector<std::string>;
    CHECK(files("ls", "/bin:/usr/bin") == Files{"/bin/ls", "/usr/bin/ls"});
    CHECK(files("ls", "/bin") == Files{"/bin/ls"});
    // An empty element is the current folder.
    CHECK(files("ls", ":/bin") == Files{"./ls", "/bin/ls"});
    CHECK(files("ls", "/bin:") == Files{"/bin/ls", "./ls"});
    CHECK(files("ls", "/a::/b") == Files{"/a/ls", "./ls", "/b/ls"});
    CHECK(files("ls", "") == Files{"./ls"});
    // A name with a slash isn't searched.
    for (const char *name : {"./ls", "/bin/ls", "here/ls", "ls/"}) CHECK(files(name, "/bin:/usr/bin") == Files{name});
}

TEST_CASE("command search: what isn't there or can't be executed is told from what runs") {
    const Tree tree;
    if (!tree.executes()) SKIP("no file of the temporary folder may be executed (noexec)");
    const std::string both = tree.a + ":" + tree.b;
    const struct {
        std::string name, path;
        std::vector<Is> found;
    } cases[] = {
        {"here", both, {Is::missing, Is::program}},
        {"here", tree.folder.path + "/none:" + both, {Is::missing, Is::missing, Is::program}},
        {"here", tree.b + "/here:" + tree.b, {Is::missing, Is::program}}, // a file, where a folder should be
        {"here", tree.b + ":" + tree.a, {Is::program, Is::missing}},
        {"no-rights", both, {Is::denied, Is::text}},
        {"folder", both, {Is::denied, Is::text}},
        {"empty", both, {Is::missing, Is::text}},
        {tree.b + "/folder", both, {Is::text}},
        {tree.b + "/here", both, {Is::program}},
        // Nothing runs: the kernel is to tell why.
        {"only-no-rights", both, {Is::program, Is::program}},
        {"missing", both, {Is::program, Is::program}},
        {tree.a + "/folder", both, {Is::program}},
    };
    for (const auto &one : cases) {
        CAPTURE(one.name);
        CAPTURE(one.path);
        CHECK(search(one.name, one.path) == one.found);
    }
}

TEST_CASE("command search: an empty element of PATH is the current folder") {
    const Tree tree;
    if (!tree.executes()) SKIP("no file of the temporary folder may be executed (noexec)");
    char before[4096];
    REQUIRE(getcwd(before, sizeof before));
    REQUIRE(chdir(tree.b.c_str()) == 0);
    CHECK(search("here", tree.a + ":") == std::vector<Is>{Is::missing, Is::program});
    CHECK(search("here", "") == std::vector<Is>{Is::program});
    CHECK(search("./here", tree.a) == std::vector<Is>{Is::program});
    REQUIRE(chdir(before) == 0);
}
