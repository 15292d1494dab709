// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/redis.hpp"

#include <cstring>
#include <stdexcept>

namespace ojs_shm::bench {

namespace {

bool copy_body(const redisReply& reply, Body& out) {
  if (reply.type != REDIS_REPLY_STRING || reply.len != sizeof out) return false;
  std::memcpy(out.bytes, reply.str, sizeof out);
  return true;
}

double seconds(Patience patience) { return static_cast<double>(patience.count()) / 1000.0; }

}  // namespace

RedisServer::RedisServer()
    : socket_(directory_.path() / "socket"),
      server_({"redis-server", "--port", "0", "--unixsocket", socket_.string(), "--save", "",
               "--appendonly", "no", "--dir", directory_.path().string()},
              socket_) {}

RedisConnection::RedisConnection(const RedisServer& server)
    : context_(::redisConnectUnix(server.socket().c_str())) {
  if (context_ == nullptr || context_->err != 0)
    throw std::runtime_error("cannot connect to " + server.socket().string());
}

RedisConnection::Reply RedisConnection::checked(void* reply) {
  Reply owned(static_cast<redisReply*>(reply));
  if (owned == nullptr) throw std::runtime_error(std::string("redis: ") + context_->errstr);
  if (owned->type == REDIS_REPLY_ERROR)
    throw std::runtime_error(std::string("redis: ") + owned->str);
  return owned;
}

void RedisSortedSet::Producer::enqueue(unsigned level, const Body& body) {
  // A score is a double: 53 exact bits hold the level and the order of arrival within it.
  const double score = static_cast<double>(std::uint64_t{level} << 40 | sequence_++);
  redis_.ask("ZADD jobs %f %b", score, body.bytes, sizeof body);
}

bool RedisSortedSet::Worker::poll(Body& out) {
  const auto reply = redis_.ask("ZPOPMIN jobs");
  return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
         copy_body(*reply->element[0], out);
}

bool RedisSortedSet::Worker::receive(Body& out, Patience patience) {
  const auto reply = redis_.ask("BZPOPMIN jobs %f", seconds(patience));
  return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
         copy_body(*reply->element[1], out);
}

void RedisLists::Producer::enqueue(unsigned, const Body& body) {
  redis_.ask("LPUSH waiting %b", body.bytes, sizeof body);
}

bool RedisLists::Worker::keep(const redisReply& reply, Body& out) {
  if (!copy_body(reply, out)) return false;
  in_progress_ = out;
  return true;
}

bool RedisLists::Worker::poll(Body& out) {
  return keep(*redis_.ask("LMOVE waiting active RIGHT LEFT"), out);
}

bool RedisLists::Worker::receive(Body& out, Patience patience) {
  return keep(*redis_.ask("BLMOVE waiting active RIGHT LEFT %f", seconds(patience)), out);
}

void RedisLists::Worker::ack() {
  redis_.ask("LREM active 1 %b", in_progress_.bytes, sizeof in_progress_);
}

}  // namespace ojs_shm::bench
