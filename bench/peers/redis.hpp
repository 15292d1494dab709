// SPDX-License-Identifier: Apache-2.0
//
// Redis on a Unix socket, nothing written to disk, one command at a time, in the two usual shapes
// of a queue:
//   - a sorted set with BZPOPMIN: priorities, but a worker that dies takes its job along (no ack);
//   - a list with BLMOVE to a list of jobs in progress and LREM as the ack: no priorities, but
//     nothing is lost.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/peers/peer.hpp"
#include "bench/peers/server_process.hpp"

namespace ojs_shm::bench {

class RedisServer {
 public:
  RedisServer();
  const std::filesystem::path& socket() const { return socket_; }

 private:
  TemporaryDirectory directory_;
  std::filesystem::path socket_;
  ServerProcess server_;
};

/// One connection; a reply that is an error becomes an exception.
class RedisConnection {
 public:
  struct FreeContext {
    void operator()(redisContext* context) const { ::redisFree(context); }
  };
  struct FreeReply {
    void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, FreeReply>;

  explicit RedisConnection(const RedisServer& server);

  template <class... Args>
  Reply ask(const char* format, Args... args) {
    return checked(::redisCommand(context_.get(), format, args...));
  }

 private:
  Reply checked(void* reply);
  std::unique_ptr<redisContext, FreeContext> context_;
};

class RedisSortedSet {
 public:
  static constexpr const char* kName = "redis_zadd_bzpopmin";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kBlocking;
  static constexpr Pace kPace = Pace::kServer;

  explicit RedisSortedSet(const Plan&) {}

  class Producer {
   public:
    explicit Producer(RedisSortedSet& peer) : redis_(peer.server_) {}
    void enqueue(unsigned level, const Body& body);

   private:
    RedisConnection redis_;
    std::uint64_t sequence_ = 0;
  };

  class Worker {
   public:
    explicit Worker(RedisSortedSet& peer) : redis_(peer.server_) {}
    bool poll(Body& out);
    bool receive(Body& out, Patience patience);
    void ack() {}

   private:
    RedisConnection redis_;
  };

 private:
  RedisServer server_;
};

class RedisLists {
 public:
  static constexpr const char* kName = "redis_lpush_blmove_lrem";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kBlocking;
  static constexpr Pace kPace = Pace::kServer;

  explicit RedisLists(const Plan&) {}

  class Producer {
   public:
    explicit Producer(RedisLists& peer) : redis_(peer.server_) {}
    void enqueue(unsigned level, const Body& body);

   private:
    RedisConnection redis_;
  };

  class Worker {
   public:
    explicit Worker(RedisLists& peer) : redis_(peer.server_) {}
    bool poll(Body& out);
    bool receive(Body& out, Patience patience);
    void ack();

   private:
    bool keep(const redisReply& reply, Body& out);
    RedisConnection redis_;
    Body in_progress_{};
  };

 private:
  RedisServer server_;
};

}  // namespace ojs_shm::bench
