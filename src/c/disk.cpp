#include "disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "failure.hpp"

namespace onlineforest::capi {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 24;  // bytes of one system call

[[noreturn]] void fail_by_system(const char* what) {
  throw Failure(OF_SYSTEM_ERROR, std::string("cannot ") + what + ": " + std::generic_category().message(errno));
}

// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  // Unlike the destructor, reports an error: some file systems write only now.
  void close() {
    if (::close(std::exchange(number_, -1)) != 0) fail_by_system("write it");
  }

 private:
  int number_;
};

void check_regular(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) throw Failure(OF_SYSTEM_ERROR, "it is not a regular file");
}

// The permissions of the file to replace; nothing if there is none.
[[nodiscard]] std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    check_regular(status);
    return static_cast<mode_t>(status.st_mode & 0777);
  }
  if (errno != ENOENT || path.empty() || path.back() == '/') fail_by_system("write it");
  return {};
}

[[nodiscard]] std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr), &std::free);
  if (found) return std::string(found.get());
  return {};
}

// Where the new file goes: a link leads to its target.
struct Place {
  std::string folder, name;
};

[[nodiscard]] Place place_of(const std::string& path) {
  const std::string target = real_path(path).value_or(path);
  const std::size_t slash = target.find_last_of('/');
  if (slash == std::string::npos) return {".", target};
  return {slash == 0 ? "/" : target.substr(0, slash), target.substr(slash + 1)};
}

// A new file beside the one to replace; removed at the end unless it has replaced it.
class Temporary {
 public:
  Temporary(const Place& place, std::optional<mode_t> mode) : target_(place.folder + '/' + place.name) {
    std::random_device random;
    int descriptor = -1;
    for (int attempt = 0; attempt < 100 && descriptor < 0; ++attempt) {
      char token[9];
      std::snprintf(token, sizeof token, "%08x", static_cast<unsigned>(random()));
      // The start of the name: the whole stays within 255 bytes.
      path_ = place.folder + "/." + place.name.substr(0, 60) + '.' + token + ".tmp";
      // Its permissions never exceed the final ones.
      descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode.value_or(0666));
      if (descriptor < 0 && errno != EEXIST) break;
    }
    if (descriptor < 0) fail_by_system("write it");
    file_.emplace(descriptor);
  }
  ~Temporary() {
    if (!is_done_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  // Restores permissions that the umask removed.
  void set_mode(mode_t mode) {
    struct stat status;
    if (::fstat(file_->number(), &status) != 0) fail_by_system("write it");
    if ((status.st_mode & 07777) != mode && ::fchmod(file_->number(), mode) != 0) fail_by_system("write it");
  }

  void write(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_->number(), bytes.data(), std::min(bytes.size(), kPiece));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail_by_system("write it");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void replace() {
    if (::fsync(file_->number()) != 0) fail_by_system("write it");
    file_->close();
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_by_system("replace it");
    is_done_ = true;
  }

 private:
  std::string target_, path_;
  std::optional<Descriptor> file_;
  bool is_done_ = false;
};

// Makes a change of names in a folder durable, if the system can open and sync it.
void sync_folder(const std::string& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open()) {
    if (errno == EACCES) return;  // a folder may be writable but not readable
    fail_by_system("sync its folder");
  }
  if (::fsync(descriptor.number()) != 0 && errno != EINVAL && errno != ENOTSUP) fail_by_system("sync its folder");
}

}  // namespace

std::uint64_t memory_of_machine() {
  const long n_pages = ::sysconf(_SC_PHYS_PAGES), n_bytes = ::sysconf(_SC_PAGESIZE);
  if (n_pages <= 0 || n_bytes <= 0) return std::uint64_t{1} << 40;
  return static_cast<std::uint64_t>(n_pages) * static_cast<std::uint64_t>(n_bytes);
}

std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t max_bytes) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail_by_system("read it");
  check_regular(status);  // opening a device may have side effects
  // If the path has become a pipe meanwhile, opening must not wait for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) fail_by_system("read it");
  check_regular(status);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes) {
    throw Failure(OF_TOO_LARGE,
                  "it has " + std::to_string(size) + " bytes, but max_bytes is " + std::to_string(max_bytes));
  }
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::read(file.number(), bytes.data() + at, std::min(bytes.size() - at, kPiece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_by_system("read it");
    if (n == 0) refuse("it became shorter while it was read");
    at += static_cast<std::size_t>(n);
  }
  return bytes;
}

void replace_file(const std::string& path, std::span<const std::span<const std::uint8_t>> parts) {
  const std::optional<mode_t> mode = mode_of(path);
  const Place place = place_of(path);
  Temporary file(place, mode);
  if (mode) file.set_mode(*mode);
  for (const std::span<const std::uint8_t> part : parts) file.write(part);
  file.replace();
  sync_folder(place.folder);
}

}  // namespace onlineforest::capi
