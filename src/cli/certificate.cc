// fairlead certificate: what a node needs to speak TLS, where no authority gives it (docs/how-to/identity.md).
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "base/unique_fd.h"
#include "cli/commands.h"
#include "net/certificate.h"

namespace fairlead::cli {
namespace {

namespace fs = std::filesystem;

struct Wanted {
  net::CertificateOptions options;
  std::string folder = ".";
};

// Never over a file that is there: a key that is lost cannot be had again.
Status write_new(const std::string& path, const std::string& text, mode_t mode) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd && errno == EEXIST) {
    return fail(Errc::kConflict, "{} is there already: name another folder with --out, or remove it first", path);
  }
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(errno_error(errno, "write " + path));
  }
  return {};
}

int run(Cli& cli, const Wanted& wanted) {
  const auto made = net::make_certificate(wanted.options);
  if (!made) return cli.report(made.error());
  std::error_code ignored;
  fs::create_directories(wanted.folder, ignored);
  // Whole paths: what is printed is copied into other folders' shells.
  const std::string folder = fs::absolute(wanted.folder, ignored).lexically_normal();
  const std::string certificate = folder + "/certificate.pem", key = folder + "/key.pem";
  if (Status written = write_new(key, made->key, 0600); !written) return cli.report(written.error());
  if (Status written = write_new(certificate, made->certificate, 0644); !written) {
    ::unlink(key.c_str());
    return cli.report(written.error());
  }
  if (cli.json()) {
    cli.out() << Json{{"certificate", certificate}, {"key", key}}.dump(2) << "\n";
    return kOk;
  }
  cli.out() << "the node:      fairlead serve --tls-certificate " << certificate << " --tls-key " << key << "\n"
            << "fairlead, SDK: export FAIRLEAD_CA=" << certificate << "\n"
            << "AWS SDKs:      export AWS_CA_BUNDLE=" << certificate << "\n";
  return kOk;
}

}  // namespace

void add_certificate(Cli& cli) {
  const auto wanted = std::make_shared<Wanted>();
  CLI::App& command = cli.add_command("certificate", "Make a certificate for a node that speaks TLS",
                                      [&cli, wanted] { return run(cli, *wanted); });
  command
      .add_option("--host", wanted->options.hosts, "Name or address at which clients reach the node; may be repeated")
      ->required();
  command.add_option("--days", wanted->options.days, "How long it is valid")->capture_default_str();
  command.add_option("--out", wanted->folder, "Folder for certificate.pem and key.pem")->capture_default_str();
}

}  // namespace fairlead::cli
