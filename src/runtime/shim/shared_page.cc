#include "runtime/shim/shared_page.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>

namespace fairlead {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

Result<UniqueFd> make_sealed_memory(const char* name, std::uint64_t bytes) {
  UniqueFd memory(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(errno_error(errno, fmt::format("make shared memory of {} bytes", bytes)));
  }
  return memory;
}

Result<SharedPage> SharedPage::create() {
  Result<UniqueFd> memory = make_sealed_memory("fairlead-shim-page", kPageBytes);
  if (!memory) return fail(memory.error());
  void* mapped = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->get(), 0);
  if (mapped == MAP_FAILED) return fail(errno_error(errno, "map the page shared with a shim"));
  std::shared_ptr<wire::ShimPage> page(new (mapped) wire::ShimPage,
                                       [](wire::ShimPage* gone) { ::munmap(static_cast<void*>(gone), kPageBytes); });
  return SharedPage(std::move(*memory), std::move(page));
}

}  // namespace fairlead
