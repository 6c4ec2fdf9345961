#include "node/trial_samples.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace fairlead {

Result<std::vector<std::string>> trial_samples(const FunctionRecord& record, const SamplesTag& samples) {
  if (samples.file.empty()) return samples.payloads;
  if (record.in_place) {  // the node would read, with its rights, what the function's own user may not
    return fail(
        Errc::kInvalidArgument,
        "tag {} is '{}', but {} runs its folder in place, of which the node reads nothing: put the samples into "
        "the tag itself",
        kSamplesTag, samples.file, record.name);
  }
  const std::string path = record.code_path + "/" + samples.file;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Errc::kInvalidArgument,
                "tag {} is '{}', and the code of {} has no file of that name at its top; of an "
                "image they are in the tag itself",
                kSamplesTag, samples.file, record.name);
  }
  const std::string where = fmt::format("{}, which tag {} names,", samples.file, kSamplesTag);
  if (info.st_size > static_cast<off_t>(kMaxSamplesBytes)) {
    return fail(Errc::kInvalidArgument, "{} is {} bytes; {} are the most", where, info.st_size, kMaxSamplesBytes);
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return parse_samples(text, where);
}

}  // namespace fairlead
