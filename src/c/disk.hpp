// Reads whole files, and replaces files atomically: whole or not at all. Must not know what is in them. POSIX only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onlineforest::capi {

// The memory of the machine in bytes.
[[nodiscard]] std::uint64_t memory_of_machine();

// The bytes of a regular file of at most max_bytes.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes parts, one after the other, into a new file that then replaces `path`, durably. If a step fails, the old file
// is unchanged; if only the last one does, to sync the folder, the new file has replaced it. A symbolic link at `path`
// stays, and the new file has the permissions of the old one.
void replace_file(const std::string& path, std::span<const std::span<const std::uint8_t>> parts);

}  // namespace onlineforest::capi
