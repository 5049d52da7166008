// Containers by the names of their cgroups, on a tree made up for it.
#include "programs/processes/container.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;

namespace {

const std::string kA(64, 'a'), kB = "ab" + std::string(62, '0'), kC = "c0ffee" + std::string(58, '1');

/// A directory tree of its own, and a /proc beside it.
struct Tree {
    test::Folder folder;
    const std::string root = folder.path + "/cgroup", proc = folder.path + "/proc";
    Tree() {
        mkdir(root.c_str(), 0755);
        mkdir(proc.c_str(), 0755);
    }
    void add(const std::string &path) const {
        for (size_t at = 0; at != std::string::npos;) {
            at = path.find('/', at + 1);
            mkdir((root + "/" + path.substr(0, at)).c_str(), 0755);
        }
        std::ofstream(root + "/" + path + "/memory.max") << "max\n";
        std::ofstream(root + "/" + path + "/odd") << "a file\n";
    }
    void process(const std::string &pid, const std::string &cgroup) const {
        mkdir((proc + "/" + pid).c_str(), 0755);
        std::ofstream(proc + "/" + pid + "/cgroup") << "9:name=systemd:/other\n0::" << cgroup << "\n";
    }
    /// Where it is, without the root; or the error's text.
    [[nodiscard]] std::string find(const std::string &wanted) const {
        auto found = find_container(root, wanted, proc);
        if (!found) return "error: " + found.error().message();
        return found->starts_with(root) ? found->substr(root.size()) : *found;
    }
};

} // namespace

TEST_CASE("containers: what names say") {
    const auto told = [](const std::string &name, const std::string &parent = "x") {
        Container c;
        return container_named(name, parent, c) ? c.engine + ":" + c.name : "-";
    };
    CHECK(told("docker-" + kA + ".scope") == "docker:" + kA);
    CHECK(told(kA, "docker") == "docker:" + kA);
    CHECK(told(kA, "pod1234") == ":" + kA);
    CHECK(told("libpod-" + kA + ".scope") == "podman:" + kA);
    CHECK(told("libpod-" + kA) == "podman:" + kA);
    CHECK(told("libpod-conmon-" + kA + ".scope") == "-");
    CHECK(told("cri-containerd-" + kA + ".scope") == "containerd:" + kA);
    CHECK(told("crio-" + kA + ".scope") == "cri-o:" + kA);
    CHECK(told("machine-debian\\x2d12.scope") == "machine:debian-12");
    CHECK(told("machine-.scope") == "-");
    CHECK(told("systemd-nspawn@web.service") == "machine:web");
    CHECK(told("lxc.payload.web") == "lxc:web");
    CHECK(told("web", "lxc") == "lxc:web");
    CHECK(told("docker-abc.scope") == "-");
    CHECK(told("session-3.scope") == "-");
    CHECK(told("system.slice") == "-");
    CHECK(told("a\\x") == "-");
}

TEST_CASE("containers: by id, by its beginning, by name") {
    Tree tree;
    CHECK(tree.find("abc").starts_with("error: container abc: no container has a cgroup under "));
    tree.add("system.slice/docker-" + kA + ".scope/init");
    tree.add("system.slice/docker-" + kB + ".scope/" + kB); // in itself once more: it is one
    tree.add("machine.slice/libpod-" + kC + ".scope/container");
    tree.add("machine.slice/libpod-conmon-" + kC + ".scope");
    tree.add("machine.slice/machine-debian\\x2d12.scope/payload/system.slice/ssh.service");
    tree.add("lxc.payload.web");
    CHECK(tree.find("aa") == "/system.slice/docker-" + kA + ".scope");
    CHECK(tree.find(kA) == "/system.slice/docker-" + kA + ".scope");
    CHECK(tree.find("ab0") == "/system.slice/docker-" + kB + ".scope");
    CHECK(tree.find("c0ffee") == "/machine.slice/libpod-" + kC + ".scope");
    CHECK(tree.find("debian-12") == "/machine.slice/machine-debian\\x2d12.scope");
    CHECK(tree.find("web") == "/lxc.payload.web");
    CHECK(tree.find("a") == "error: container a: there are 2 of them: docker aaaaaaaaaaaa, docker ab0000000000");
    const std::string none = tree.find("we");
    CHECK(none.starts_with("error: container we: there isn't one; there are: "));
    for (const char *there : {"docker aaaaaaaaaaaa", "podman c0ffee111111", "machine debian-12", "lxc web"})
        CHECK(none.find(there) != std::string::npos);
    CHECK(tree.find("").starts_with("error: "));
    CHECK(find_container(tree.root, "a").error().kind == Errc::invalid_argument);
    CHECK(find_container(tree.root, "zz").error().kind == Errc::not_found);
    CHECK(!find_container(tree.root + "/nowhere", "abc"));
}

TEST_CASE("containers: by a process in it") {
    Tree tree;
    const std::string scope = "/machine.slice/machine-web.scope";
    tree.add("machine.slice/machine-web.scope/payload/system.slice/ssh.service");
    tree.process("100", scope + "/payload/system.slice/ssh.service");
    tree.process("101", "/user.slice/session-1.scope");
    tree.process("102", "/");
    tree.process("103", "/../../other");
    CHECK(tree.find("100") == scope);
    CHECK(tree.find("101") == "/user.slice/session-1.scope"); // in none: its own cgroup is what is meant
    CHECK(tree.find("102").find("in no container") != std::string::npos);
    CHECK(tree.find("103").find("outside") != std::string::npos);
    CHECK(tree.find("104") == "error: there is no process 104");
    CHECK(tree.find("12345678").find("there isn't one") != std::string::npos); // too long for a process: an id
}
