// SPDX-License-Identifier: Apache-2.0
//
// What a client says to a server in the life of a job. Each peer has the same three steps: in, out,
// done; each job has the same 64 bytes.
#pragma once

#include "bench/load.hpp"

namespace ojs_shm::bench {

enum class Steps {
  kEnqueue,  ///< in alone
  kLife,     ///< in, out, done, again and again
};

std::unique_ptr<Dialogue> gateway_dialogue(Steps steps);
/// Each request a batch of so many jobs.
std::unique_ptr<Dialogue> gateway_batches(unsigned jobs);
/// ZADD, BZPOPMIN, and an HDEL as the ack.
std::unique_ptr<Dialogue> redis_dialogue(Steps steps);
/// put, reserve, delete.
std::unique_ptr<Dialogue> beanstalkd_dialogue(Steps steps);

template <class Make>
Dialogues several(unsigned count, const Make& make) {
  Dialogues dialogues;
  while (dialogues.size() < count) dialogues.push_back(make());
  return dialogues;
}

}  // namespace ojs_shm::bench
