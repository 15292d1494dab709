// SPDX-License-Identifier: Apache-2.0
#include "tests/catalogue/basic_operations.hpp"

namespace ojs_shm::test {

void let_three_wait(Caller& caller) {
  caller.put(0, 1);
  caller.put(5, 1);
  caller.put(1, 1);
  caller.put(2, 2);
  caller.cancel(5);
  caller.bring(17);
}

const std::vector<BasicOperation>& basic_operations() {
  static const std::vector<BasicOperation> all = {
      {"put_first", [](Caller& c) { c.put(c.own(0), 0); }},
      {"put_beside", [](Caller& c) { c.put(c.own(0), 1); }},
      {"put_batch", [](Caller& c) { c.put_batch(c.own(0), 1); }},
      {"put_large", [](Caller& c) { c.put(c.own(3), 2); }},
      {"bring_beside", [](Caller& c) { c.bring_beside(c.own(2)); }},
      {"put_again", [](Caller& c) { c.put_again(); }},
      {"take", [](Caller& c) { c.take(); }},
      {"take_finish", [](Caller& c) { c.take(), c.finish(); }},
      {"take_finish_twice", [](Caller& c) { c.take_finish_twice(); }},
      {"take_give_back", [](Caller& c) { c.take(), c.give_back(); }},
      {"take_leave", [](Caller& c) { c.take(), c.leave(); }, "close_worker closes a handle"},
      {"take_fail", [](Caller& c) { c.take(), c.fail(); }},
      {"take_beat", [](Caller& c) { c.take(), c.beat(); }},
      {"cancel_0", [](Caller& c) { c.cancel(0); }},
      {"move_0_first", [](Caller& c) { c.move(0, 0); }},
      {"move_0_last", [](Caller& c) { c.move(0, 3); }},
      {"close", [](Caller& c) { c.close_levels(); },
       "a part of a fetch: fetch_past_many_levels closes levels"},
      {"pack", [](Caller& c) { c.pack(); },
       "one dead hint is too few for chunks of 14: pack_rings has eighty"},
      {"tend", [](Caller& c) { c.tend(); },
       "alone it finds nothing that is due: end_lease, promote_due and expire_due do"},
  };
  return all;
}

}  // namespace ojs_shm::test
