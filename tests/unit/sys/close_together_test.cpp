// Descriptors closed at the same time.
#include "runtime/sys/close_together.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/format.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("close together: few and many are all closed when it returns, and nothing else is") {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(other >= 0);
    for (const size_t count : {0u, 1u, 4u, 5u, 200u}) {
        std::vector<Fd> files;
        std::vector<int> numbers;
        for (size_t i = 0; i < count; ++i) {
            files.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
            REQUIRE(files.back());
            numbers.push_back(files.back().get());
        }
        sys::close_together(std::move(files));
        for (int fd : numbers) CHECK(fcntl(fd, F_GETFD) == -1);
        CHECK(fcntl(other, F_GETFD) >= 0);
    }
    close(other);
}

TEST_CASE("close together: calls that somebody watches come one after the other") {
    test::FakeKernel kernel;
    CHECK(sys::is_watched());
    std::vector<Fd> files;
    std::string in_order;
    for (int fd = 2'000'000; fd < 2'000'100; ++fd) {
        files.emplace_back(fd);
        append(in_order, "{} was closed but not open; ", fd);
    }
    sys::close_together(std::move(files));
    CHECK(kernel.leaks() == in_order);
}
