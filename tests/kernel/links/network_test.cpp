// Interfaces, sockets and cgroups, in a network namespace and a cgroup that the test makes and removes.
#include <cerrno>
#include <cstdio>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/format.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/clsact.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/net.h"
#include "tests/kernel/links/linking.h"
#include "tests/support/fds.h"

using namespace rawbpf;
using test::Loaded;

namespace {

// An empty network namespace, with lo up, for the calling thread; the old one afterwards.
class OwnNetwork {
  public:
    OwnNetwork() {
        before_ = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        if (before_ < 0 || unshare(CLONE_NEWNET) != 0) return;
        made_ = true;
        int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ifreq request{};
        std::strcpy(request.ifr_name, "lo");
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        (void)ioctl(s, SIOCSIFFLAGS, &request);
        close(s);
    }
    ~OwnNetwork() {
        if (made_) (void)setns(before_, CLONE_NEWNET);
        if (before_ >= 0) close(before_);
    }
    OwnNetwork(const OwnNetwork &) = delete;
    OwnNetwork &operator=(const OwnNetwork &) = delete;
    explicit operator bool() const { return made_; }

  private:
    int before_ = -1;
    bool made_ = false;
};

sockaddr_in local(uint16_t port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

// `count` datagrams to nobody, over lo.
void send_packets(int count) {
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = local(9);
    for (int i = 0; i < count; ++i) (void)sendto(s, "x", 1, 0, reinterpret_cast<sockaddr *>(&to), sizeof to);
    close(s);
}

std::string cgroup2() {
    Result<std::string> mounts = sys::read_file("/proc/self/mounts");
    if (!mounts) return {};
    for (std::string_view rest = *mounts; !rest.empty();) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        size_t first = line.find(' '), second = line.find(' ', first + 1);
        if (second != std::string_view::npos && line.substr(second + 1).starts_with("cgroup2 "))
            return std::string(line.substr(first + 1, second - first - 1));
    }
    return {};
}

// A cgroup of our own, empty and removed afterwards.
class OwnCgroup {
  public:
    OwnCgroup() {
        std::string root = cgroup2();
        if (root.empty()) return;
        path_ = format("{}/rawbpf-link-test-{}", root, getpid());
        if (!sys::make_directory(path_)) path_.clear();
        if (!path_.empty()) fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    ~OwnCgroup() {
        if (!path_.empty()) (void)sys::remove_directory(path_);
    }
    OwnCgroup(const OwnCgroup &) = delete;
    OwnCgroup &operator=(const OwnCgroup &) = delete;
    explicit operator bool() const { return static_cast<bool>(fd_); }
    [[nodiscard]] int fd() const { return fd_.get(); }

    /// Runs `body` in a child in the cgroup: its exit status, -1 where it couldn't be put there.
    template <class Body> int run(Body body) {
        int child = fork();
        if (child == 0) {
            int procs = ::open((path_ + "/cgroup.procs").c_str(), O_WRONLY);
            if (procs < 0 || write(procs, "0", 1) != 1) _exit(255);
            _exit(body());
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
    }

  private:
    std::string path_;
    Fd fd_;
};

#define NEEDS_NETWORK()                                                                                                          \
    if (!has_program_type(BPF_PROG_TYPE_XDP)) SKIP("needs CAP_BPF and CAP_NET_ADMIN");                                           \
    OwnNetwork network;                                                                                                          \
    if (!network) SKIP("needs a network namespace of its own (CAP_SYS_ADMIN)")
#define NEEDS_ATTACH(type, words)                                                                                                \
    if (probe_attach_type(type).support != Support::yes) SKIP("needs " words)

} // namespace

TEST_CASE("link: XDP on an interface; another program in its place; pinned and not") {
    NEEDS_NETWORK();
    NEEDS_ATTACH(BPF_XDP, "XDP links, 5.9");
    Loaded loaded = test::load_one("run_30").value(), other = test::load_one("run_49").value();
    CHECK(loaded.attach().error().kind == Errc::invalid_argument); // on which one?
    AttachOptions options;
    options.interface = sys::interface_index("lo").value();
    options.flags = XDP_FLAGS_SKB_MODE;
    Link link = loaded.attach(options).value();
    CHECK(link.what() == "xdp on lo");
    send_packets(3);
    for (int i = 0; i < 200 && loaded.run(30).count < 3; ++i) usleep(10000); // a packet on lo may wait for ksoftirqd
    const uint64_t first = loaded.run(30).count;
    CHECK(first >= 3);
    CHECK(other.attach(options).error().kind == Errc::busy);

    CHECK(link.update(other.program().fd.get(), other.program().fd.get()).error().kind == Errc::busy); // that one doesn't run yet
    REQUIRE(link.update(other.program().fd.get(), loaded.program().fd.get()));
    send_packets(2);
    for (int i = 0; i < 200 && other.run(49).count < 2; ++i) usleep(10000);
    CHECK(loaded.run(30).count == first);
    CHECK(other.run(49).count >= 2);
    CHECK(link.info().value().program_id == sys::prog_info(other.program().fd.get()).value().id);
    if (FILE *pipe =
            popen(format("bpftool link show id {} 2>/dev/null", link.info().value().id).c_str(), "r")) { // where there is one
        char text[256] = {};
        if (fgets(text, sizeof text, pipe))
            CHECK(std::string_view(text).find(format("xdp  prog {}", link.info().value().program_id)) != std::string_view::npos);
        pclose(pipe);
    }
    CHECK(link.detach());
    CHECK_FALSE(link.attached());
    const uint64_t second = other.run(49).count;
    send_packets(2);
    CHECK(other.run(49).count == second);
    options.interface = 4711;
    CHECK_MESSAGE(loaded.attach(options).error().kind == Errc::not_found, loaded.attach(options).error().message());
    CHECK(sys::interface_index("nosuchif").error().kind == Errc::not_found);
    CHECK(sys::interface_index("a-name-that-is-too-long").error().kind == Errc::invalid_argument);
}

TEST_CASE("link: tcx, in and out; tc becomes tcx where there is one") {
    NEEDS_NETWORK();
    NEEDS_ATTACH(uapi::BPF_TCX_INGRESS, "tcx, 6.6");
    AttachOptions options;
    options.interface = sys::interface_index("lo").value();
    Loaded in = test::load_one("run_32").value(), out = test::load_one("run_48").value(), tc = test::load_one("run_31").value();
    Link ingress = in.attach(options).value(), egress = out.attach(options).value();
    CHECK(ingress.info().value().type == LinkType::TCX);
    Link classic = tc.attach(options).value();
    CHECK(classic.what() == "tc ingress on lo");
    CHECK(classic.info().value().type == LinkType::TCX);
    send_packets(4);
    CHECK(in.run(32).count >= 4);
    CHECK(out.run(48).count >= 4);
    CHECK(tc.run(31).count >= 4);
}

TEST_CASE("link: a tc filter by netlink, for kernels before tcx") {
    NEEDS_NETWORK();
    Loaded tc = test::load_one("run_31").value();
    const uint32_t lo = sys::interface_index("lo").value();
    for (bool egress : {false, true}) {
        const uint64_t before = tc.run(31).count;
        Result<ClsactFilter> filter = add_clsact_filter(lo, egress, tc.program().fd.get(), "run_31");
        if (!filter && filter.error().kind == Errc::unsupported) SKIP("needs clsact and bpf filters: " + filter.error().hint);
        REQUIRE_MESSAGE(filter, filter.error().message());
        CHECK(filter->made_qdisc);
        CHECK(filter->priority != 0);
        send_packets(3);
        CHECK(tc.run(31).count >= before + 3);
        // A second one doesn't make the qdisc, and doesn't take it away.
        ClsactFilter second = add_clsact_filter(lo, egress, tc.program().fd.get(), "again").value();
        CHECK_FALSE(second.made_qdisc);
        CHECK(remove_clsact_filter(second));
        CHECK(remove_clsact_filter(*filter));
        CHECK_FALSE(remove_clsact_filter(*filter)); // it is gone, and that is said
        const uint64_t after = tc.run(31).count;
        send_packets(3);
        CHECK(tc.run(31).count == after);
    }
    CHECK(add_clsact_filter(4711, false, tc.program().fd.get(), "x").error().os == ENODEV);
}

TEST_CASE("link: cgroup programs, for those in the cgroup") {
    NEEDS_NETWORK();
    OwnCgroup cgroup;
    if (!cgroup) SKIP("needs cgroup2, mounted and writable");
    Loaded egress = test::load_one("run_34").value(), connects = test::load_one("run_35").value(),
           sockops = test::load_one("run_37").value();
    CHECK(egress.attach().error().kind == Errc::invalid_argument);
    AttachOptions options;
    options.target_fd = cgroup.fd();
    auto before = test::open_descriptors();
    {
        Link one = egress.attach(options).value(), two = connects.attach(options).value(),
             three = sockops.attach(options).value();
        CHECK(one.info().value().type == LinkType::CGROUP);
        int status = cgroup.run([] {
            int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            sockaddr_in to = local(9);
            if (connect(s, reinterpret_cast<sockaddr *>(&to), sizeof to) != 0) return 1;
            (void)send(s, "x", 1, 0);
            close(s);
            return 0;
        });
        if (status < 0) SKIP("needs a cgroup2 that processes may be moved in");
        CHECK(status == 0);
        CHECK(egress.run(34).count == 1);
        CHECK(connects.run(35).count == 1);
        send_packets(1); // we aren't in it
        CHECK(egress.run(34).count == 1);
    }
    CHECK(test::open_descriptors() == before);
    Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    options.target_fd = file.get();
    CHECK(egress.attach(options).error().hint.find("cgroup v2") != std::string::npos);
}

TEST_CASE("link: programs of a network namespace") {
    NEEDS_NETWORK();
    Fd ns(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    AttachOptions options;
    Loaded lookup = test::load_one("run_36").value();
    CHECK(lookup.attach().error().kind == Errc::invalid_argument);
    options.target_fd = ns.get();
    Link link = lookup.attach(options).value();
    CHECK(link.info().value().type == LinkType::NETNS);
    // A connection looks for its listener by way of the program.
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = local(7777);
    REQUIRE(bind(listener, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
    REQUIRE(listen(listener, 1) == 0);
    CHECK(connect(client, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
    CHECK(lookup.run(36).count >= 1);
    close(client);
    close(listener);
    Result<Loaded> dissector = test::load_one("run_40");
    if (dissector) {
        Link flow = dissector->attach(options).value();
        Error second = dissector->attach(options).error();
        CHECK(second.kind == Errc::busy);
    }
}

TEST_CASE("link: programs of a socket map, found by themselves or named") {
    NEEDS_NETWORK();
    Loaded message = test::load_one("run_39").value();
    Error nowhere = message.attach().error();
    CHECK(nowhere.kind == Errc::invalid_argument);
    CHECK(nowhere.hint == "the object has 0 of them");
    MapSpec spec;
    spec.name = "sockets";
    spec.type = BPF_MAP_TYPE_SOCKMAP;
    spec.key_size = spec.value_size = 4;
    spec.max_entries = 4;
    message.object.maps.push_back(Map::create(spec).value());
    Link link = message.attach().value();
    if (probe_link_type(static_cast<uint32_t>(LinkType::SOCKMAP)).support == Support::yes) {
        CHECK(link.info().value().type == LinkType::SOCKMAP);
    } else {
        CHECK(link.fd() == -1);
        CHECK(link.notes().size() == 1);
    }
    CHECK(link.detach());
    Link again = message.attach().value(); // there is room again
    CHECK(again.attached());
}

TEST_CASE("link: netfilter, at a hook") {
    NEEDS_NETWORK();
    NEEDS_ATTACH(uapi::BPF_NETFILTER, "netfilter programs, 6.4");
    Loaded loaded = test::load_one("run_41").value();
    CHECK(loaded.attach().error().kind == Errc::invalid_argument);
    AttachOptions options;
    options.netfilter = {2, 3, 100}; // NFPROTO_IPV4, NF_INET_LOCAL_OUT
    Result<Link> link = loaded.attach(options);
    if (!link && link.error().os == EOPNOTSUPP) SKIP("needs netfilter for IPv4");
    REQUIRE_MESSAGE(link, link.error().message());
    send_packets(2);
    CHECK(loaded.run(41).count >= 2);
    CHECK(loaded.attach(options).error().hint.find("priority") != std::string::npos);
}

TEST_CASE("link: a socket filter, until it is dropped") {
    NEEDS_NETWORK();
    Loaded loaded = test::load_one("run_42").value();
    CHECK(loaded.attach().error().kind == Errc::invalid_argument);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = local(9);
    REQUIRE(bind(s, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
    AttachOptions options;
    options.target_fd = s;
    {
        Link link = loaded.attach(options).value();
        CHECK(link.fd() == -1);
        CHECK(link.info().error().kind == Errc::unsupported);
        CHECK(link.pin("/sys/fs/bpf/x").error().kind == Errc::unsupported);
        send_packets(2);
        CHECK(loaded.run(42).count == 2);
    }
    send_packets(2);
    CHECK(loaded.run(42).count == 2);
    close(s);
}

TEST_CASE("link: sk_reuseport chooses among the sockets of a port") {
    NEEDS_NETWORK();
    if (!has_program_type(BPF_PROG_TYPE_SK_REUSEPORT)) SKIP("needs sk_reuseport programs, 4.19");
    Loaded loaded = test::load_one("run_52").value();
    CHECK(loaded.attach().error().kind == Errc::invalid_argument);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    REQUIRE(setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0);
    sockaddr_in to = local(9);
    REQUIRE(bind(s, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
    AttachOptions options;
    options.target_fd = s;
    {
        Result<Link> link = loaded.attach(options);
        REQUIRE_MESSAGE(link, link.error().message());
        send_packets(2);
        CHECK(loaded.run(52).count == 2);
    }
    send_packets(2);
    CHECK(loaded.run(52).count == 2);
    close(s);
}

TEST_CASE("link: an LSM hook for one cgroup") {
    if (!has_program_type(BPF_PROG_TYPE_LSM)) SKIP("needs LSM programs, 5.7");
    NEEDS_ATTACH(uapi::BPF_LSM_CGROUP, "LSM programs of cgroups, 6.0 (CONFIG_BPF_LSM, trampolines)");
    OwnCgroup cgroup;
    if (!cgroup) SKIP("needs a cgroup of its own (cgroup2 mounted)");
    Result<Loaded> loaded = test::load_one("run_53");
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    CHECK(loaded->attach().error().kind == Errc::invalid_argument);
    AttachOptions options;
    options.target_fd = cgroup.fd();
    auto make_socket = [] {
        close(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        return 0;
    };
    {
        Result<Link> link = loaded->attach(options);
        if (!link && link.error().os == 524) SKIP("needs trampolines on this architecture (arm64: 6.4)"); // ENOTSUPP
        REQUIRE_MESSAGE(link, link.error().message());
        CHECK(link->info().value().type == LinkType::CGROUP);
        make_socket(); // not in the cgroup
        CHECK(loaded->run(53).count == 0);
        REQUIRE(cgroup.run(make_socket) == 0);
        if (Result<std::string> active = sys::read_file("/sys/kernel/security/lsm");
            active && active->find("bpf") != std::string::npos)
            CHECK(loaded->run(53).count == 1);
    }
    const uint64_t before = loaded->run(53).count;
    REQUIRE(cgroup.run(make_socket) == 0);
    CHECK(loaded->run(53).count == before);
}

// A device of that kind by rtnetlink, up; netkit devices come in pairs, `second` is the other. False where the kernel makes none.
static bool make_device(const char *kind, const char *first, const char *second = nullptr) {
    struct {
        nlmsghdr head;
        ifinfomsg link;
        char room[512];
    } request{};
    request.head.nlmsg_len = NLMSG_LENGTH(sizeof(ifinfomsg));
    request.head.nlmsg_type = RTM_NEWLINK;
    request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
    request.link.ifi_flags = request.link.ifi_change = IFF_UP;
    auto *bytes = reinterpret_cast<char *>(&request);
    auto begin = [&](uint16_t type, const void *data, size_t size) {
        auto *attribute = reinterpret_cast<rtattr *>(bytes + NLMSG_ALIGN(request.head.nlmsg_len));
        attribute->rta_type = type;
        attribute->rta_len = static_cast<uint16_t>(RTA_LENGTH(size));
        if (size > 0) std::memcpy(RTA_DATA(attribute), data, size);
        request.head.nlmsg_len = NLMSG_ALIGN(request.head.nlmsg_len) + static_cast<uint32_t>(RTA_ALIGN(attribute->rta_len));
        return attribute;
    };
    auto end = [&](rtattr *outer) {
        outer->rta_len = static_cast<uint16_t>(bytes + request.head.nlmsg_len - reinterpret_cast<char *>(outer));
    };
    constexpr uint16_t kPeerInfo = 1; // IFLA_NETKIT_PEER_INFO
    begin(IFLA_IFNAME, first, std::strlen(first) + 1);
    rtattr *info = begin(IFLA_LINKINFO, nullptr, 0);
    begin(IFLA_INFO_KIND, kind, std::strlen(kind) + 1);
    if (second) {
        rtattr *data = begin(IFLA_INFO_DATA, nullptr, 0);
        const ifinfomsg up{
            .ifi_family = 0, .__ifi_pad = 0, .ifi_type = 0, .ifi_index = 0, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
        rtattr *peer = begin(kPeerInfo, &up, sizeof up);
        begin(IFLA_IFNAME, second, std::strlen(second) + 1);
        end(peer);
        end(data);
    }
    end(info);
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct {
        nlmsghdr head;
        nlmsgerr error;
    } answer{};
    const bool sent = send(s, &request, request.head.nlmsg_len, 0) > 0 && recv(s, &answer, sizeof answer, MSG_TRUNC) > 0;
    close(s);
    if (!sent || answer.head.nlmsg_type != NLMSG_ERROR || answer.error.error != 0) return false;
    if (!second) return true;
    ifreq flags{}; // the peer's wish to be up isn't heard
    std::strcpy(flags.ifr_name, second);
    flags.ifr_flags = IFF_UP;
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool is_up = ioctl(s, SIOCSIFFLAGS, &flags) == 0;
    close(s);
    return is_up;
}

TEST_CASE("link: netkit, at either end of a pair") {
    NEEDS_NETWORK();
    NEEDS_ATTACH(uapi::BPF_NETKIT_PRIMARY, "netkit, 6.7");
    if (!make_device("netkit", "rawbpf0", "rawbpf1")) SKIP("needs netkit devices (CONFIG_NETKIT)");
    Loaded primary = test::load_one("run_33").value(), peer = test::load_one("run_54").value();
    AttachOptions options;
    options.interface = if_nametoindex("lo");
    CHECK_FALSE(primary.attach(options));          // not a netkit device
    options.interface = if_nametoindex("rawbpf0"); // both programs belong to the primary end
    Result<Link> one = primary.attach(options), two = peer.attach(options);
    REQUIRE_MESSAGE(one, one.error().message());
    REQUIRE_MESSAGE(two, two.error().message());
    CHECK(one->info().value().type == LinkType::NETKIT);
    const char packet[20] = {0x45};
    int s = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (const char *name : {"rawbpf0", "rawbpf1"}) { // out of either end
        sockaddr_ll to{};
        to.sll_family = AF_PACKET;
        to.sll_protocol = htons(ETH_P_IP);
        to.sll_ifindex = static_cast<int>(if_nametoindex(name));
        (void)sendto(s, packet, sizeof packet, 0, reinterpret_cast<sockaddr *>(&to), sizeof to);
    }
    close(s);
    CHECK(primary.run(33).count >= 1);
    CHECK(peer.run(54).count >= 1);
    CHECK(one->detach());
    CHECK(two->detach());
}

// The name is the same in all kernels; the device is made in a namespace of our own.
TEST_CASE("link: functions of one module, by name and by pattern") {
    NEEDS_NETWORK();
    if (!has_program_type(BPF_PROG_TYPE_KPROBE)) SKIP("needs CAP_BPF and CAP_PERFMON");
    if (!sys::exists("/sys/bus/event_source/devices/kprobe/type")) SKIP("needs kprobes (CONFIG_KPROBE_EVENTS)");
    if (!sys::exists("/sys/module/dummy")) SKIP("needs a module to look into: dummy");
    // What it counts while a device of the module's is made, `slot` being the program's.
    auto count = [](Loaded &loaded, size_t slot, const char *name) {
        const uint64_t before = loaded.run(slot).count;
        CHECK(make_device("dummy", name));
        return loaded.run(slot).count - before;
    };
    AttachOptions options;
    Loaded one = test::load_one("run_25").value();
    for (const char *target : {"dummy:dummy_setup", "dummy:dummy_setup+0x0"}) {
        options.target = target;
        Link link = one.attach(options).value();
        CHECK(link.places() == 1);
        CHECK(link.notes().empty());
        CHECK(count(one, 25, std::string_view(target).ends_with('p') ? "rawbpf2" : "rawbpf3") == 1);
    }
    options.target = "dummy:vfs_read";
    Error error = one.attach(options).error();
    CHECK_MESSAGE(error.message().find("kernel function vfs_read: not in module dummy") != std::string::npos, error.message());
    options.target = "no_such_module:vfs_read";
    error = one.attach(options).error();
    CHECK_MESSAGE(error.message().find("no module no_such_module is loaded") != std::string::npos, error.message());
    options.target = "vmlinux:vfs_read";
    CHECK(one.attach(options).value().places() >= 1);

    Loaded many = test::load_one("run_57").value();
    {
        Link link = many.attach().value();
        CHECK(link.places() > 1);
        CHECK(count(many, 57, "rawbpf4") > 1);
    }
    options.target = "dummy:vfs_*";
    error = many.attach(options).error();
    CHECK_MESSAGE(error.message().find("no kernel function of module dummy matches \"vfs_*\"") != std::string::npos,
                  error.message());

    if (probe_attach_type(uapi::BPF_TRACE_FENTRY_MULTI).support != Support::yes || !sys::exists("/sys/kernel/btf/dummy")) return;
    Result<Loaded> trampolines = test::load_one("run_58");
    REQUIRE_MESSAGE(trampolines, trampolines.error().message());
    {
        Result<Link> link = trampolines->attach();
        REQUIRE_MESSAGE(link, link.error().message());
        CHECK(link->places() > 1);
        CHECK(count(*trampolines, 58, "rawbpf5") > 1);
    }
    // The kernel checks a program for the types of one module.
    options.target = "vfs_*";
    error = trampolines->attach(options).error();
    CHECK_MESSAGE(error.message().find("the program was loaded for functions of module dummy") != std::string::npos,
                  error.message());
}

TEST_CASE("link: an infrared device is named, and must be one; a kernel without infrared is told from one that refuses") {
    if (!has_program_type(BPF_PROG_TYPE_XDP)) SKIP("needs CAP_BPF");
    if (!has_program_type(BPF_PROG_TYPE_LIRC_MODE2)) { // most kernels for servers: no CONFIG_BPF_LIRC_MODE2
        Result<Loaded> none = test::load_one("run_51");
        REQUIRE_FALSE(none);
        CHECK_MESSAGE(none.error().hint.find("no programs of type BPF_PROG_TYPE_LIRC_MODE2") != std::string::npos,
                      none.error().hint);
        return;
    }
    Loaded loaded = test::load_one("run_51").value();
    CHECK(loaded.attach().error().hint.find("/dev/lirc0") != std::string::npos);
    AttachOptions options;
    Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.target_fd = null.get();
    CHECK_FALSE(loaded.attach(options));
}

TEST_CASE("link: what never attaches by itself says what it is for") {
    if (!has_program_type(BPF_PROG_TYPE_XDP)) SKIP("needs CAP_BPF");
    for (auto [name, words] :
         {std::pair("run_43", "ip route"), {"run_44", "map's entry"}, {"run_45", "BPF_PROG_TEST_RUN"}, {"run_50", "tc ..."}}) {
        INFO(name);
        Result<Loaded> loaded = test::load_one(name);
        if (!loaded) continue; // lwt programs aren't in every kernel
        CHECK_FALSE(attaches_by_itself(loaded->program()));
        Error error = loaded->attach().error();
        CHECK(error.kind == Errc::invalid_argument);
        CHECK_MESSAGE(error.hint.find(words) != std::string::npos, error.hint);
        Attached attached = attach_object(loaded->spec, loaded->object).value();
        CHECK(attached.links.empty());
        CHECK(attached.notes.size() == 1);
    }
}
