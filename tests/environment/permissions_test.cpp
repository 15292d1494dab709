// SPDX-License-Identifier: Apache-2.0
// A user who may write the file is trusted; all others are refused, whatever the creator's umask
// was.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/environment/segment_fixture.hpp"

namespace ojs_shm::test {
namespace {

// Numbers that belong to no user will do: the kernel asks for no entry in /etc/passwd.
constexpr uid_t kAnna = 48'001, kBen = 48'002, kClara = 48'003;

class Permissions : public SegmentFixture {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "NOT RUN: only root can be several users";
    const group* known = ::getgrnam("users");
    if (known == nullptr) GTEST_SKIP() << "NOT RUN: no group 'users' here";
    shared_group = known->gr_gid;
    // As /dev/shm is: all may add files, none may remove another's.
    ASSERT_EQ(::chmod(scratch.path().c_str(), 01777), 0);
  }

  Forked::Body create_as_anna(std::uint32_t mode) const {
    return [=, this](Parent& parent) {
      ::umask(077);
      SegmentOptions options = small_options();
      options.mode = mode;
      options.group = "users";
      const auto made = Segment::create(name, options);
      parent.tell(made.ok() ? "ok" : made.error().message);
      return 0;
    };
  }
  void expect_code(uid_t user, gid_t group, std::string_view code,
                   const std::function<Code()>& call) {
    Forked child([&](Parent& parent) { return parent.tell(code_name(call())), 0; },
                 {.user = user, .group = group});
    OJS_SHM_SKIP_IF_FORBIDDEN(child);
    EXPECT_EQ(child.listen().value_or("(silence)"), code) << "as user " << user;
  }

  gid_t shared_group = 0;
};

TEST_F(Permissions, a_group_shares_and_a_stranger_is_refused_whatever_the_umask) {
  Forked anna(create_as_anna(0660), {.user = kAnna, .group = shared_group});
  OJS_SHM_SKIP_IF_FORBIDDEN(anna);
  ASSERT_EQ(anna.listen().value_or(""), "ok");
  ASSERT_EQ(anna.wait(), 0);  // she has left
  const auto enqueue = [this] { return Producer::attach(name)->enqueue(job_spec()).code(); };
  const auto work = [this] {
    auto worker = Worker::attach(name, {});
    Job job;
    const Status fetched = worker->fetch(job, kBound);
    return fetched.ok() ? worker->ack(job).code() : fetched.code();
  };
  expect_code(kBen, shared_group, "ok", enqueue);
  expect_code(kAnna, shared_group, "ok", work);
  expect_code(kBen, shared_group, "ok", [this] { return Observer::attach(name).code(); });
  const gid_t strangers = kClara;
  expect_code(kClara, strangers, "permission", [this] { return Segment::attach(name).code(); });
  expect_code(kClara, strangers, "permission", [this] { return Observer::attach(name).code(); });
  expect_code(kClara, strangers, "permission",
              [this] { return Broker::start(name, small_options()).code(); });
  expect_code(kClara, strangers, "permission",
              [this] { return remove_segment(name, Removal::kForced).code(); });
  expect_code(kAnna, shared_group, "ok",
              [this] { return remove_segment(name, Removal::kWithJobs).code(); });
}

TEST_F(Permissions, who_may_only_read_may_observe_and_no_more) {
  Forked anna(create_as_anna(0640), {.user = kAnna, .group = shared_group});
  OJS_SHM_SKIP_IF_FORBIDDEN(anna);
  ASSERT_EQ(anna.listen().value_or(""), "ok");
  ASSERT_EQ(anna.wait(), 0);  // she has left
  expect_code(kBen, shared_group, "permission", [this] { return Segment::attach(name).code(); });
  expect_code(kBen, shared_group, "ok", [this] {
    const auto observer = Observer::attach(name);
    return observer.ok() && observer->audit().empty() ? Code::kOk : observer.code();
  });
}

TEST_F(Permissions, a_refusal_names_the_file) {
  Forked anna(create_as_anna(0600), {.user = kAnna, .group = shared_group});
  OJS_SHM_SKIP_IF_FORBIDDEN(anna);
  ASSERT_EQ(anna.listen().value_or(""), "ok");
  ASSERT_EQ(anna.wait(), 0);  // she has left
  Forked ben(
      [this](Parent& parent) { return parent.tell(Segment::attach(name).error().message), 0; },
      {.user = kBen, .group = shared_group});
  EXPECT_NE(ben.listen().value_or("").find(scratch.path() + "/ojs-shm."), std::string::npos);
}

}  // namespace
}  // namespace ojs_shm::test
