// The command line as a whole: the options every command shares, the commands, and the way from arguments to an exit
// status. A command is one file with one add_*() function (commands.h).
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "cli/node_client.h"

namespace fairlead::cli {

class Cli {
 public:
  // Streams are borrowed. `in` is what "-" names as a payload.
  Cli(std::istream& in, std::ostream& out, std::ostream& err);

  // args: without the program's name. Returns the exit status; never throws.
  int run(std::vector<std::string> args);

  // `run` returns the exit status. The options of the command are added to what is returned.
  CLI::App& add_command(const std::string& name, const std::string& description, std::function<int()> run);
  // One below another: `fairlead sim record`.
  CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& description,
                        std::function<int()> run);

  // One that does nothing without an action below it: `fairlead object put`.
  CLI::App& add_group(const std::string& name, const std::string& description);

  // For commands, while they run.
  std::istream& in() { return in_; }
  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }
  bool json() const { return json_; }
  bool out_is_terminal() const { return out_is_terminal_; }
  void set_out_is_terminal(bool value) { out_is_terminal_ = value; }
  NodeClient& node();
  // As it was given; else nearest_endpoint().
  const std::string& endpoint();
  std::string config_path() const;  // as it was given; "": none
  int report(const Error& error);   // to stderr; gives the exit status

  const CLI::App& app() const { return app_; }

 private:
  int report_usage(const CLI::ParseError& error);

  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
  CLI::App app_;
  std::map<const CLI::App*, std::function<int()>> commands_;
  std::string endpoint_ = "http://127.0.0.1:9001";
  bool is_endpoint_settled_ = false;
  bool json_ = false;
  bool out_is_terminal_ = false;
  std::unique_ptr<NodeClient> node_;
};

}  // namespace fairlead::cli
