// SPDX-License-Identifier: Apache-2.0
//
// Turns: parties with weights share one word that says whose turn is next. A fetch chooses by that word, moves it by one cas,
// and only then claims a job. In a queue the parties are levels, and a fetch whose claim fails keeps its turn; in a pool
// (POOL) they are queues, and the word has no version.
//   fetcher   Search::survey_turns, take_turn; Fetcher::fetch, fetch_from_pool, PoolPolicy::choose
//   writer    QueueOrder::set_level_weights, Pools::define: the cycle that no process reads, then the word
// A claim is one cas on a job that a look has seen. What was found empty is empty for ever here.
//
// Proved: the turn that is taken is the next one in the cycle in force, at the instant of its cas, of those who have a job;
// each turn leads to one job, but for that of a fetcher who was killed in between; so where all have jobs each has exactly
// its share; no process is told that there is nothing while there is.
#ifndef FETCHERS
#define FETCHERS 3
#define FETCHES 2
#define JOBS_0 9  // of the first party; all that the fetchers can take, or fewer
#define JOBS_1 9
#define CHANGES 0
#define POOL 0
#define VICTIM 9  // a fetcher; 9: nobody
#endif
#define PLENTY (JOBS_0 + JOBS_1 == 18)
#define W 3

// Weights 2 and 1, then 1 and 2.
byte cycle[2 * W];
byte next, bank, version;
byte all[2], first[2];       // jobs of a party, and how many of them have been claimed
byte turns[2], spent, died;  // turns taken, given away, and lost with a fetcher
bool dead, over[FETCHERS];

inline take_turn() {
  d_step {
#ifdef MUTANT_STORED
    won = true;
#else
#ifdef MUTANT_VERSION_KEPT
    won = next == nx && bank == b;
#else
    won = next == nx && bank == b && (POOL || version == v);
#endif
#endif
    if
    :: won ->
      assert(cycle[bank * W + at] == level);
      assert(!PLENTY || next == at);
#ifndef MUTANT_NOT_MOVED
      next = (at + 1) % W;
#endif
      version++;
      turns[level]++
    :: else
    fi
  }
}
inline look() { seen = first[level]; found = seen < all[level] }
inline claim() { d_step { won = first[level] == seen; if :: won -> first[level]++ :: else fi } }

proctype Fetcher(byte me) {
  byte nx, b, v, i, at, level, seen, n, tried;
  bool holds, found, won;
  {
    do
    :: atomic { n == FETCHES -> break }
    :: atomic { n < FETCHES && holds -> look(); if :: found -> goto claims :: else -> holds = false; spent++ fi }
    :: atomic { n < FETCHES && !holds -> nx = next; b = bank; v = version };
       do
       :: atomic {
            i < W && !found -> at = (nx + i) % W; level = cycle[b * W + at];
            if :: (tried >> level & 1) == 0 -> look(); tried = tried | 1 << level :: else fi;
            i++
          }
       :: atomic { found -> break }
       :: atomic { i == W && !found -> assert(first[0] == all[0] && first[1] == all[1]); n = FETCHES; goto again }
       od;
#ifdef MUTANT_CLAIMED_FIRST
       atomic { claim() };
       atomic { if :: won -> n++; take_turn() :: else fi; goto again };
#endif
       atomic { take_turn(); holds = won; if :: !won -> goto again :: else fi };
claims:
       atomic {
         claim();
         if :: won -> holds = false; n++ :: else fi;
#ifdef MUTANT_TURN_NOT_KEPT
         holds = false
#endif
       };
again:
       atomic { nx = 0; b = 0; v = 0; i = 0; at = 0; seen = 0; tried = 0; won = false; found = false; level = (holds -> level : 0) }
    od;
    over[me] = true
  } unless { atomic { me == VICTIM && dead -> if :: holds -> died++ :: else fi } }
}

proctype Writer() {
  byte i, n, other;
  do
  :: n < CHANGES ->
    other = 1 - bank;
    n++;
#ifdef MUTANT_WORD_FIRST
    atomic { next = 0; bank = other; version++ };
#endif
    i = 0;
    do
    :: i < W ->
      cycle[other * W + i] = ((i + n) % 3 == 0 -> 0 : 1);
      i++
    :: else -> break
    od;
#ifndef MUTANT_WORD_FIRST
    atomic { next = 0; bank = other; version++ }
#endif
  :: else -> break
  od
}

proctype Killer() {
  atomic { if :: VICTIM < FETCHERS && !over[VICTIM] -> dead = true :: true fi }
}

proctype Judge() {
  byte t;
  timeout;
  d_step {
    t = turns[0] + turns[1];
    assert(first[0] + first[1] + spent + died == t);
    assert(died <= 1);
    assert(!PLENTY || spent == 0);
    assert(!PLENTY || CHANGES > 0 || (turns[0] == (t + 2) / 3 + t / 3 && turns[1] == (t + 1) / 3))
  }
}

init {
  byte i;
  atomic {
    all[0] = JOBS_0;
    all[1] = JOBS_1;
    cycle[0] = 0; cycle[1] = 1; cycle[2] = 0;
    do :: i < FETCHERS -> run Fetcher(i); i++ :: else -> break od;
    if :: CHANGES > 0 -> run Writer() :: else fi;
    run Killer();
    run Judge()
  }
}
