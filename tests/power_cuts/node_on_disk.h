// Everything of a node that says that it is on disk, as the node has it, over one state folder: functions with their code, the queue
// of events over the store, keys, secrets. A start, some work drawn from a seed, an end.
//
//   promises.functions   "g1"   -> its description      FunctionControl, Store, the folder of its code
//   promises.events      "e12"  -> its payload          AsyncInvocations, Store: it waits, or is a dead letter
//   promises.keys        "k2"   -> "issued"             KeyDesk, KeyFile; by its note
//   promises.secrets     "s3"   -> its value            SecretVault
//
// Objects are not here: what is sealed survives the node's death and not the machine's (store/object_files_test.cc).
//
// Threads: the test's, beside the store's and the worker's own. A power cut copies `Promised` on whatever thread it happens.
#pragma once

#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "identity/key_desk.h"
#include "identity/secret_vault.h"
#include "node/async_invocations.h"
#include "node/function_control.h"
#include "node/testing/node_without_processes.h"
#include "power_cuts/promises.h"

namespace fairlead::power_cuts {

struct Promised {
  Promises functions, events, keys, secrets;
  int last = 0;  // number of what was ever asked for

  std::size_t told_ever() const {
    return functions.told_ever() + events.told_ever() + keys.told_ever() + secrets.told_ever();
  }
};

// Shared with who cuts the power.
struct Notebook {
  std::mutex mutex;
  Promised promised;
};

class NodeOnDisk final : public NodeWithoutProcesses {
 public:
  // `code`: a folder with a function's code.
  NodeOnDisk(std::string folder, std::string code, Notebook& notebook, std::uint64_t seed);
  // Why it does not start.
  Status start();
  // Of what it found.
  bool says_damage() const { return !store_->damage().findings.empty() || vault_->damaged() > 0; }
  // What is wrong with what the start found; "": nothing.
  std::string check();
  // `steps` things are done, or as many as there are before `is_over`.
  void work(int steps);

 private:
  void TestBody() override {}  // it is no test by itself

  // Of the notebook, which a cut may copy at any time.
  template <typename Note>
  void note(Note take_down) {
    const std::lock_guard lock(notebook_.mutex);
    take_down(notebook_.promised);
  }
  std::string fresh(char kind);
  void wait_for(const bool& is_done);
  void step();
  void send_event();
  void let_run();
  void deploy();
  void remove_function();
  void change_key();
  void change_secret();

  const std::string folder_, code_;
  Notebook& notebook_;
  std::mt19937_64 random_;
  std::vector<std::string> functions_, keys_, secrets_;  // that are there, or may be
  std::vector<QueuedEvent> found_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<AsyncInvocations> events_;
  std::unique_ptr<FunctionControl> control_;
  std::unique_ptr<identity::KeyDesk> desk_;
  std::unique_ptr<identity::SecretVault> vault_;
};

}  // namespace fairlead::power_cuts
