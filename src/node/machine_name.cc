#include "node/machine_name.h"

#include <limits.h>
#include <unistd.h>

#include "decide/cluster/cluster_view.h"

namespace fairlead {

std::string machine_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  std::string text(name);
  for (char& c : text) {
    if (!validate_node_name(std::string_view(&c, 1))) c = '-';
  }
  return text.empty() ? "node" : text.substr(0, kMaxNodeNameLength);
}

}  // namespace fairlead
