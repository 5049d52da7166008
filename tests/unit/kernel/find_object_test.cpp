// What fdinfo says of a descriptor, and where file systems are mounted: texts of /proc, good and bad.
#include "runtime/kernel/find_object.h"
#include "runtime/sys/mounts.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("fdinfo says which object a descriptor is") {
    constexpr std::string_view kMap = "pos:\t0\nflags:\t02000002\nmap_type:\t2\nmemlock:\t344\nmap_id:\t12\nfrozen:\t0\n";
    const auto map = object_in_fdinfo("anon_inode:bpf-map", kMap);
    REQUIRE(map.has_value());
    CHECK(map->kind == sys::ObjectKind::map);
    CHECK(map->id == 12);
    CHECK(fdinfo_number(kMap, "memlock") == 344);
    CHECK(fdinfo_number(kMap, "map") == std::nullopt); // the whole name only
    CHECK(fdinfo_number(kMap, "id") == std::nullopt);  // and at the start of a line
    const auto link = object_in_fdinfo("anon_inode:bpf_link", "link_type:\txdp\nlink_id:\t7\nprog_tag:\t00\nprog_id:\t9\n");
    REQUIRE(link.has_value());
    CHECK(link->kind == sys::ObjectKind::link);
    CHECK(link->id == 7);
    CHECK(object_in_fdinfo("anon_inode:bpf-link", "link_id:\t7\n").has_value()); // 5.7's name
    CHECK_FALSE(object_in_fdinfo("anon_inode:bpf-prog", kMap).has_value());      // no prog_id in it
    CHECK_FALSE(object_in_fdinfo("anon_inode:[eventfd]", kMap).has_value());
    CHECK_FALSE(object_in_fdinfo("anon_inode:bpf-map", "map_id:\t\n").has_value());
    CHECK_FALSE(object_in_fdinfo("anon_inode:bpf-map", "map_id:").has_value());
    CHECK_FALSE(object_in_fdinfo("anon_inode:bpf-map", "").has_value());
    CHECK(kind_of_link("anon_inode:btf") == sys::ObjectKind::btf);
    CHECK(kind_of_link("anon_inode:bpf-link") == sys::ObjectKind::link);
    CHECK_FALSE(kind_of_link("/dev/null").has_value());
}

TEST_CASE("mount points are found by type, with their paths as they are") {
    constexpr std::string_view kMounts = "proc /proc proc rw 0 0\n"
                                         "bpf /sys/fs/bpf bpf rw,nosuid 0 0\n"
                                         "bpf /mnt/two\\040words bpf rw 0 0\n"
                                         "x /bpf tmpfs bpf 0 0\n"
                                         "bpf /sys/fs/bpf bpf rw 0 0\n"
                                         "cut short\n"
                                         "none /a\\0 bpf";
    CHECK(sys::mount_points("bpf", kMounts) == std::vector<std::string>{"/sys/fs/bpf", "/mnt/two words", "/a\\0"});
    CHECK(sys::mount_points("cgroup2", kMounts).empty());
    CHECK(sys::mount_points("bpf", "").empty());
    CHECK(sys::mount_points("bpf", "\n \n  \n").empty());
}
