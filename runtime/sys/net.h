// Sockets, as far as attaching needs them: interfaces by name, options of a socket, netlink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// The index of a network interface of this network namespace (SIOCGIFINDEX). Errors: not_found.
[[nodiscard]] Result<uint32_t> interface_index(const std::string &name);
/// Its name (SIOCGIFNAME). Errors: not_found.
[[nodiscard]] Result<std::string> interface_name(uint32_t index);

/// setsockopt(2) on SOL_SOCKET with one number: SO_ATTACH_BPF ...
[[nodiscard]] Result<void> set_socket_option(int socket, int option, int value);

/// One request over NETLINK_ROUTE. `message` starts with a struct nlmsghdr, whose length and sequence number are filled in here
/// and which asks for an acknowledgement. What the kernel sent before that, whole messages one after another; a dump
/// (NLM_F_DUMP) whole. Errors: the errno of the answer, with the kernel's own words where it has some (NETLINK_EXT_ACK, 4.12).
[[nodiscard]] Result<std::vector<std::byte>> netlink(std::vector<std::byte> message);

} // namespace rawbpf::inline v0::sys
