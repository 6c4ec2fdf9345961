// What every event makes of every state, or -- where it is refused.
#include "runtime/device_servers/server_states.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace fairlead {
namespace {

using Table = std::map<std::string, std::vector<std::string>>;

template <typename State, typename Event>
Table table_of(int states, int events) {
  Table table;
  for (int s = 0; s < states; ++s) {
    std::vector<std::string>& row = table[std::string(name_of(static_cast<State>(s)))];
    for (int e = 0; e < events; ++e) {
      const auto next = step(static_cast<State>(s), static_cast<Event>(e));
      row.emplace_back(next ? name_of(*next) : "--");
    }
  }
  return table;
}

TEST(ServerStates, OfAServer) {
  EXPECT_EQ((table_of<ServerPhase, ServerEvent>(4, 4)), (Table{
                                                            //            start       ready      end        retire
                                                            {"over", {"starting", "--", "--", "--"}},
                                                            {"starting", {"--", "serving", "resting", "--"}},
                                                            {"serving", {"--", "--", "resting", "--"}},
                                                            {"resting", {"starting", "--", "--", "over"}},
                                                        }));
}

TEST(ServerStates, OfASession) {
  EXPECT_EQ((table_of<SessionState, SessionEvent>(5, 6)),
            (Table{
                //              opened    register       trial       trial over     ready    reopened
                {"opening", {"opened", "--", "--", "--", "--", "opening"}},
                {"opened", {"--", "registering", "--", "--", "--", "opening"}},
                {"registering", {"--", "--", "on trial", "--", "ready", "opening"}},
                {"on trial", {"--", "--", "--", "registering", "ready", "opening"}},
                {"ready", {"--", "--", "--", "--", "--", "opening"}},
            }));
}

TEST(ServerStates, OfACall) {
  EXPECT_EQ((table_of<CallState, CallEvent>(5, 5)), (Table{
                                                        //            opened  send  keep  reopened  dropped
                                                        {"opening", {"waiting", "--", "--", "opening", "--"}},
                                                        {"waiting", {"--", "sent", "--", "opening", "--"}},
                                                        {"sent", {"--", "--", "keeping", "opening", "unwanted"}},
                                                        {"keeping", {"--", "--", "--", "opening", "--"}},
                                                        {"unwanted", {"--", "--", "--", "--", "--"}},
                                                    }));
}

}  // namespace
}  // namespace fairlead
