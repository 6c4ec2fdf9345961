#include "fairlead/models.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "abi/model_store.h"
#include "fairlead/driver.h"
#include "fairlead/error.h"

namespace fairlead {
namespace {

constexpr int kAttempts = 5;  // of what another process gave up, or a server that ended took with it
constexpr std::uint64_t kPieceBytes = 16 << 20;

[[noreturn]] void fail(const std::string& type, const std::string& message) {
  throw Error("Model." + type, message);
}
[[noreturn]] void fail_errno(const std::string& what) {
  fail("Unavailable", what + ": " + std::strerror(errno));
}

const char* type_of(std::uint32_t error) {
  constexpr std::array<const char*, 7> kNames = {"Refused", "Absent", "Pending",    "Again",
                                                 "Refused", "NoRoom", "Unavailable"};
  return kNames[error < kNames.size() ? error : 0];
}

// Closes what it holds.
struct Descriptors {
  std::vector<int> all;
  Descriptors() = default;
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    for (const int descriptor : all) ::close(descriptor);
  }
};

// This process's connection to the node; the process holds its models until it closes. A fork makes one of its own.
class Connection {
 public:
  static Connection& get() {
    static Connection connection;
    if (connection.pid_ != ::getpid()) connection.connect();
    return connection;
  }

  ModelAnswer ask(ModelRequest request, Descriptors& descriptors) {
    send(request);
    ModelAnswer first{};
    bool has_first = false;
    while (!has_first || descriptors.all.size() < first.blocks) {
      const ModelAnswer answer = receive(descriptors);
      if (answer.number != number_) lose("an answer to another request");
      if (answer.kind == MODEL_ERROR) {
        fail(type_of(answer.error), std::string(answer.message, ::strnlen(answer.message, sizeof answer.message)));
      }
      if (!std::exchange(has_first, true)) first = answer;
    }
    return first;
  }
  void send(ModelRequest& request) {
    request.version = MODEL_PROTOCOL;
    request.number = ++number_;
    if (::send(socket_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) lose(std::strerror(errno));
  }

 private:
  void connect() {
    if (socket_ >= 0) ::close(socket_);
    const char* const path = std::getenv("FAIRLEAD_MODELS");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) {
      fail("Unavailable",
           "FAIRLEAD_MODELS is not set: this is no function of a node, or the node shares no models (--model-memory)");
    }
    std::strcpy(address.sun_path, path);
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail_errno(std::string("connect to ") + path);
    }
    pid_ = ::getpid();
  }

  ModelAnswer receive(Descriptors& descriptors) {
    ModelAnswer answer{};
    iovec part{&answer, sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(MODEL_FDS_PER_PACKET * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t size = 0;
    do {
      size = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      const std::size_t before = descriptors.all.size();
      descriptors.all.resize(before + count);
      std::memcpy(&descriptors.all[before], CMSG_DATA(header), count * sizeof(int));
    }
    if (size != sizeof answer || answer.version != MODEL_PROTOCOL)
      lose(size < 0 ? std::strerror(errno) : "end of file");
    if ((message.msg_flags & MSG_CTRUNC) != 0) lose("this process has no file descriptors left");
    return answer;
  }

  [[noreturn]] void lose(const std::string& why) {
    pid_ = 0;  // the next request connects anew
    fail("Unavailable", "the node's socket for models: " + why);
  }

  int socket_ = -1;
  pid_t pid_ = 0;
  std::uint64_t number_ = 0;
};

class File {
 public:
  explicit File(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) fail_errno("open " + path);
    bytes_ = static_cast<std::uint64_t>(info.st_size);
    const auto nanoseconds = [](const timespec& time) {
      return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
    };
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "@%" PRIx64 ".%" PRIx64 ".%" PRIx64,
                  static_cast<std::uint64_t>(info.st_ino), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim));
    which_ = text.data();
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  // Which one it is where it is: its number and when it was written.
  const std::string& which() const { return which_; }
  std::string read(std::uint64_t from, std::uint64_t count) const {
    std::string bytes(count, '\0');
    for (std::uint64_t done = 0; done < count;) {
      const ssize_t got = ::pread(descriptor_, bytes.data() + done, count - done, static_cast<off_t>(from + done));
      if (got == 0) fail("Format", path_ + " became shorter while it was read");
      if (got < 0 && errno != EINTR) fail_errno("read " + path_);
      if (got > 0) done += static_cast<std::uint64_t>(got);
    }
    return bytes;
  }

 private:
  const std::string path_;
  const int descriptor_;
  std::uint64_t bytes_ = 0;
  std::string which_;
};

}  // namespace

SharedTensor SharedTensor::open(const Gpu& gpu, const std::string& id, std::uint64_t bytes, const Fill& fill) {
  if (id.empty() || id.size() >= MODEL_ID_BYTES) {
    fairlead::fail("Refused", "the id has " + std::to_string(id.size()) + " bytes; it must have 1 to 255");
  }
  for (int attempt = 1;; ++attempt) {
    try {
      Connection& connection = Connection::get();
      ModelRequest request{};
      request.kind = MODEL_OPEN;
      request.bytes = bytes;
      request.flags = MODEL_WAIT;
      id.copy(request.id, sizeof request.id - 1);
      SharedTensor tensor;
      Descriptors descriptors;
      ModelAnswer answer = connection.ask(request, descriptors);
      tensor.number_ = answer.tensor;
      tensor.bytes_ = answer.bytes;
      if (answer.kind == MODEL_READY) {
        tensor.map(gpu, descriptors.all, false);
        return tensor;
      }
      tensor.map(gpu, descriptors.all, true);
      fill(tensor.address_);  // where it throws, the destructor gives the tensor up
      gpu.synchronize();
      tensor.unmap();
      ModelRequest seal{};
      seal.kind = MODEL_SEAL;
      seal.tensor = tensor.number_;
      Descriptors sealed;
      answer = connection.ask(seal, sealed);
      tensor.number_ = answer.tensor;
      tensor.map(gpu, sealed.all, false);
      return tensor;
    } catch (const Error& error) {
      if (error.type() != "Model.Again" || attempt == kAttempts) throw;
    }
  }
}

void SharedTensor::map(const Gpu& gpu, const std::vector<int>& descriptors, bool writable) {
  driver_ = &gpu.driver();
  reserved_ = (bytes_ + MODEL_GRANULE_BYTES - 1) / MODEL_GRANULE_BYTES * MODEL_GRANULE_BYTES;
  CUdeviceptr address = 0;
  check_driver(*driver_, driver_->cuMemAddressReserve(&address, reserved_, 0, 0, 0), "cuMemAddressReserve");
  address_ = address;
  for (const int descriptor : descriptors) {
    const std::uint64_t size = std::min<std::uint64_t>(MODEL_BLOCK_BYTES, reserved_ - mapped_);
    CUmemGenericAllocationHandle memory = 0;
    void* const shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
    check_driver(*driver_,
                 driver_->cuMemImportFromShareableHandle(&memory, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 "cuMemImportFromShareableHandle");
    const CUresult mapped = driver_->cuMemMap(address_ + mapped_, size, 0, memory, 0);
    driver_->cuMemRelease(memory);  // the mapping keeps it
    check_driver(*driver_, mapped, "cuMemMap");
    mapped_ += size;
  }
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, gpu.device()}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  read_only_ = !writable && driver_->cuMemSetAccess(address_, reserved_, &access, 1) == CUDA_SUCCESS;
  if (read_only_) return;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_driver(*driver_, driver_->cuMemSetAccess(address_, reserved_, &access, 1), "cuMemSetAccess");
}

void SharedTensor::unmap() {
  if (address_ == 0) return;
  if (mapped_ > 0) {
    for (std::uint64_t at = 0; at < mapped_; at += MODEL_BLOCK_BYTES) {
      driver_->cuMemUnmap(address_ + at, std::min<std::uint64_t>(MODEL_BLOCK_BYTES, mapped_ - at));
    }
  }
  driver_->cuMemAddressFree(address_, reserved_);
  address_ = mapped_ = 0;
}

SharedTensor::SharedTensor(SharedTensor&& other) noexcept
    : driver_(other.driver_),
      number_(std::exchange(other.number_, 0)),
      address_(std::exchange(other.address_, 0)),
      bytes_(other.bytes_),
      reserved_(other.reserved_),
      mapped_(std::exchange(other.mapped_, 0)),
      read_only_(other.read_only_) {}

SharedTensor::~SharedTensor() {
  unmap();
  if (number_ == 0) return;
  try {
    ModelRequest close{};
    close.kind = MODEL_CLOSE;
    close.tensor = number_;
    Connection::get().send(close);
  } catch (const Error&) {  // the node has gone, and with it what this process held
  }
}

SharedModel SharedModel::load(const Gpu& gpu, const std::string& path, const std::string& id) {
  const File file(path);
  const std::uint64_t length =
      safetensors_header_bytes(file.read(0, std::min<std::uint64_t>(8, file.bytes())), file.bytes());
  SafetensorsHeader header = parse_safetensors_header(file.read(8, length), file.bytes());
  if (header.data_bytes == 0) fail("Format", path + " has no tensor with any bytes");
  const auto fill = [&](std::uint64_t address) {
    for (std::uint64_t done = 0; done < header.data_bytes; done += kPieceBytes) {
      const std::string piece = file.read(header.data_begin + done, std::min(kPieceBytes, header.data_bytes - done));
      check_driver(gpu.driver(), gpu.driver().cuMemcpyHtoD_v2(address + done, piece.data(), piece.size()),
                   "cuMemcpyHtoD");
    }
  };
  // Two files of one name, and of one size, are two models; so is one that was written over.
  const std::string place = std::filesystem::canonical(path).string();
  const std::string name =
      id.empty() ? place.substr(place.size() - std::min<std::size_t>(place.size(), 190)) + file.which() : id;
  SharedTensor memory = SharedTensor::open(gpu, name, header.data_bytes, fill);
  return SharedModel(std::move(header), std::move(memory));
}

std::uint64_t SharedModel::address(const std::string& tensor) const {
  const auto found = header_.tensors.find(tensor);
  if (found == header_.tensors.end()) fail("Format", "the model has no tensor '" + tensor.substr(0, 80) + "'");
  return memory_.address() + found->second.begin;
}

}  // namespace fairlead
