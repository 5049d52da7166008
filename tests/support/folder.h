// A folder for the files of a test, which goes with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace rawbpf::test {

struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "rawbpf-test-XXXXXX").string();
    Folder() {
        if (!mkdtemp(path.data())) std::abort();
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
};

} // namespace rawbpf::test
