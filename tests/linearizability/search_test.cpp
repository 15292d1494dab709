// SPDX-License-Identifier: Apache-2.0
// The sequential queue that the search compares with, call by call, and what it knows of deaths.

#include <gtest/gtest.h>

#include "tests/linearizability/search.hpp"

namespace ojs_shm::test {
namespace {

using engine::JobState;

/// One call after another, in the order in which they are written.
struct Story {
  History history;
  std::uint64_t now = 0;
  Story& add(Operation operation) {
    operation.call = now++;
    operation.returned = operation.answer == Answer::kPending ? kNever : now++;
    history.operations.push_back(operation);
    return *this;
  }
  Story& put(std::uint8_t job, std::uint8_t level) {
    return add({.kind = Kind::kEnqueue, .answer = Answer::kOk, .job = job, .level = level});
  }
  Story& in_line(std::uint8_t line) {
    history.operations.back().line = line;
    return *this;
  }
  Story& got(std::uint8_t job, std::uint8_t level, std::uint8_t process = 0) {
    return add({.kind = Kind::kFetch,
                .answer = Answer::kOk,
                .process = process,
                .job = job,
                .level = level});
  }
  Story& empty() { return add({.kind = Kind::kFetch, .answer = Answer::kEmpty}); }
  Story& end(Kind kind, Answer answer, std::uint8_t job, std::uint8_t process = 0) {
    return add({.kind = kind, .answer = answer, .process = process, .job = job});
  }
  Story& cancel(std::uint8_t job, Answer answer, JobState found) {
    return add({.kind = Kind::kCancel, .answer = answer, .job = job, .found = found});
  }
  Story& move(std::uint8_t job, std::uint8_t level, Answer answer, std::uint8_t previous = 9) {
    return add({.kind = Kind::kReprioritize,
                .answer = answer,
                .job = job,
                .level = level,
                .previous = previous});
  }
  Story& mend(std::uint8_t process) {
    return add({.kind = Kind::kMend, .answer = Answer::kOk, .process = 5, .previous = process});
  }
};

void right(const Story& story) {
  EXPECT_EQ(search(story.history), Verdict::kRight) << print(story.history);
}
void wrong(const Story& story) {
  EXPECT_EQ(search(story.history), Verdict::kWrong) << print(story.history);
}

TEST(Search, knows_levels_and_their_order) {
  right(Story().put(0, 1).put(1, 0).put(2, 0).got(1, 0).got(2, 0).got(0, 1).empty());
  wrong(Story().put(0, 1).put(1, 0).got(0, 1));
  wrong(Story().put(0, 0).put(1, 0).got(1, 0));
  wrong(Story().put(0, 0).empty());
}

TEST(Search, knows_who_holds_a_job) {
  right(Story()
            .put(0, 0)
            .got(0, 0)
            .end(Kind::kAck, Answer::kOk, 0)
            .end(Kind::kAck, Answer::kLost, 0)
            .empty());
  wrong(Story().put(0, 0).got(0, 0).end(Kind::kAck, Answer::kOk, 0, 1));
  right(Story()
            .put(0, 0)
            .got(0, 0)
            .cancel(0, Answer::kOk, JobState::kActive)
            .end(Kind::kAck, Answer::kLost, 0));
  wrong(Story()
            .put(0, 0)
            .got(0, 0)
            .cancel(0, Answer::kOk, JobState::kActive)
            .end(Kind::kAck, Answer::kOk, 0));
  wrong(Story().put(0, 0).cancel(0, Answer::kOk, JobState::kAvailable).got(0, 0));
  right(Story().cancel(0, Answer::kNotFound, JobState::kAvailable).put(0, 0).got(0, 0));
}

TEST(Search, knows_the_front_lane_and_its_times) {
  right(Story()
            .put(0, 0)
            .put(1, 0)
            .got(0, 0)
            .end(Kind::kRequeue, Answer::kOk, 0)
            .got(0, 0)
            .got(1, 0));
  wrong(Story().put(0, 0).put(1, 0).got(0, 0).end(Kind::kRequeue, Answer::kOk, 0).got(1, 0));
  Story two;
  two.put(0, 0).put(1, 0).got(0, 0).got(1, 0);
  two.end(Kind::kRequeue, Answer::kOk, 1).end(Kind::kRequeue, Answer::kOk, 0).got(1, 0).got(0, 0);
  right(two);  // available since the same moment: as they came back
  two.history.since[1] = 5;
  wrong(two);  // job 0 has waited longer
}

TEST(Search, knows_moves) {
  right(Story().put(0, 0).put(1, 1).move(0, 1, Answer::kOk, 0).got(1, 1).got(0, 1));
  wrong(Story().put(0, 0).put(1, 1).move(0, 1, Answer::kOk, 0).got(0, 1));
  wrong(Story().put(0, 0).move(0, 1, Answer::kOk, 0).got(0, 0));
  right(Story().put(0, 0).got(0, 0).move(0, 1, Answer::kWrongState));
  wrong(Story().put(0, 0).got(0, 0).move(0, 1, Answer::kOk, 0));
}

TEST(Search, knows_ages) {
  Story old;
  old.put(0, 2).put(1, 1).put(2, 0);
  old.history.rules = {1000, 100, {}};
  old.history.since[0] = 1;    // counts for level -7
  old.history.since[1] = 750;  // for level -1
  old.history.since[2] = 990;  // for what it is
  const Story aged = Story(old).got(0, 2).got(1, 1).got(2, 0).empty();
  right(aged);
  wrong(Story(old).got(2, 0).got(1, 1).got(0, 2).empty());
  wrong(Story(old).got(0, 2).got(2, 0).got(1, 1).empty());
  Story plain = aged;
  plain.history.rules = {};
  wrong(plain);
}

/// Job 2 has a place in level 0 before job 3 comes, and stands before the oldest in level 1 until
/// it goes there.
TEST(Search, a_move_has_two_instants_where_age_counts) {
  Story story;
  story.put(2, 1).put(0, 1).put(1, 0).move(2, 0, Answer::kOk);
  story.put(3, 0).got(1, 0).got(0, 1).got(2, 0).got(3, 0).empty();
  story.history.rules = {1000, 100, {}};
  story.history.since = {1, 990, 990, 990};
  wrong(story);  // job 0 was in sight when job 1 was fetched
  std::vector<Operation>& calls = story.history.operations;
  calls[3].returned = calls[6].call;
  right(story);
  calls[3].returned = calls[4].call;
  wrong(story);
}

TEST(Search, knows_turns) {
  Story four;
  four.put(0, 0).put(1, 0).put(2, 1).put(3, 3);
  four.history.rules.cycle = {0, 1, 0};
  right(Story(four).got(0, 0).got(2, 1).got(1, 0).got(3, 3).empty());
  wrong(Story(four).got(0, 0).got(1, 0).got(2, 1).got(3, 3).empty());
  wrong(Story(four).got(0, 0).got(3, 3).got(2, 1).got(1, 0).empty());
  right(Story(four).got(0, 0).got(2, 1).put(4, 1).got(1, 0).got(4, 1).got(3, 3));
  wrong(Story(four).got(0, 0).put(4, 1).got(2, 1).got(4, 1));  // two turns in a row
}

TEST(Search, knows_lines) {
  Story two;
  two.put(0, 1).put(1, 0).in_line(1).put(2, 1).in_line(1);
  two.history.rules.lines = 2;
  right(Story(two).got(0, 1).got(1, 0).got(2, 1).empty());
  wrong(Story(two).got(1, 0).got(0, 1));            // it is at home in line 0
  wrong(Story(two).got(0, 1).got(2, 1).got(1, 0));  // and takes from another what goes first there
  right(Story(two).got(1, 0).in_line(1).got(0, 1).got(2, 1));
  wrong(Story(two).got(0, 1).empty());
  right(Story(two).move(1, 1, Answer::kOk).got(2, 1).in_line(1).got(0, 1).got(1, 1));
  right(Story(two).got(1, 0).in_line(1).end(Kind::kRequeue, Answer::kOk, 1).got(0, 1).got(1, 0));
  wrong(Story(two).got(0, 1, 1).mend(1).got(1, 0));
  right(Story(two).got(0, 1, 1).mend(1).got(0, 1));
}

/// Each line was empty at some instant of the call, and yet there was always a job.
TEST(Search, empty_is_one_instant_of_all_lines) {
  Story story;
  story.put(0, 0).in_line(1).put(1, 0).got(0, 0, 1).in_line(1).empty().got(1, 0);
  story.history.rules.lines = 2;
  std::vector<Operation>& calls = story.history.operations;
  calls[3].call = calls[1].call;
  wrong(story);
  calls[1].returned = calls[2].returned;
  right(story);
}

TEST(Search, a_killed_call_happened_or_did_not) {
  const Operation put{.kind = Kind::kEnqueue, .process = 1, .job = 0, .level = 0};
  right(Story().add(put).mend(1).got(0, 0).empty());
  right(Story().add(put).mend(1).empty());
  wrong(Story().add(put).mend(1).empty().got(0, 0));  // not after the repair
  const Operation fetch{.kind = Kind::kFetch, .process = 1};
  right(Story().put(0, 0).add(fetch).empty().mend(1).got(0, 0));
  wrong(Story().put(0, 0).add(fetch).mend(1).empty());
  const Operation cancel{.kind = Kind::kCancel, .process = 1, .job = 0};
  right(Story().put(0, 0).add(cancel).empty().mend(1).empty());
  right(Story().put(0, 0).add(cancel).empty().mend(1).got(0, 0));  // undone, in front
  const Operation move{.kind = Kind::kReprioritize, .process = 1, .job = 0, .level = 2};
  right(Story().put(0, 0).add(move).mend(1).got(0, 2));
  right(Story().put(0, 0).add(move).mend(1).got(0, 0));
}

TEST(Search, what_a_dead_process_held_goes_to_the_front_of_its_level) {
  right(Story().put(0, 0).put(1, 0).got(0, 0, 1).mend(1).got(0, 0).got(1, 0).empty());
  wrong(Story().put(0, 0).put(1, 0).got(0, 0, 1).mend(1).got(1, 0));
  wrong(Story().put(0, 0).got(0, 0, 1).mend(1).empty());
  wrong(Story().put(0, 0).got(0, 0, 1).got(0, 0));  // not before the repair
}

}  // namespace
}  // namespace ojs_shm::test
