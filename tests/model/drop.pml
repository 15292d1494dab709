// SPDX-License-Identifier: Apache-2.0
//
// Dropping the oldest waiting jobs for a batch, and the word that commits both: credit in a bounded queue that is full, victims
// in the hands of whoever drops, slots that are being filled, one store after which a repair goes forward and before
// which it goes back.
//   producer  Actor::enqueue_batch, publish_batch; Room::admit, take_back_admission;
//             Dropping::admit_by_dropping, claim_victim, commit_drop, drop_victims, end_refused_drop
//   fetcher   Fetcher::fetch; StraightFetch::take
//   repair    Repairer::repair, undo_tallies, finish_batch, finish_drop, let_go; Seat::leave_if_ours; Room::settle_reserved
// A claim is one cas on the oldest waiting job that a look has seen. Sums are read in one step after `reserved`: what happens
// while they are read is the model `bounds`.
//
// Proved: with its victims out and its new jobs in, the queue never holds more than MAX; when all is quiet a batch is there as
// a whole or not at all; who was dropped has been counted, and as many were dropped as were too many; every charge is
// accounted for. Also when a producer is killed at any step, and its repairer too.
#ifndef MAX
#define MAX 2
#define START 2
#define BATCH 2      // jobs of the first producer
#define SECOND 1     // and of the second; 0: there is none
#define FETCHER 0
#define FAILS 0      // a producer may find no slot
#define VICTIM 9     // 0: the first producer; 9: nobody
#define REPAIRERS 1  // 2: the first may die too
#endif
#define JOBS (START + BATCH + SECOND)
#define FIRST_OF(p) (START + (p) * BATCH)
#define OF(p) ((p) == 0 -> BATCH : SECOND)
#define FETCHING 2
#define NONE 15

mtype = { nowhere, filling, available, moving, dropped, taken };
mtype job[JOBS] = nowhere;
byte owner[JOBS] = NONE;

byte reserved = START, written_off, refill;
byte in_reserved[3], out[3], dropped_by[3];
byte seat = NONE;  // dropper

mtype = { nothing, admitting, batching, moving_back, giving_back };
mtype intent[3] = nothing;
byte before[3];                    // in_reserved before the operation
byte commit[3];                    // the commit word; of a give-back, `out` as it shall be
byte out_shall[3], count_shall[3];
byte moves[3];                     // whose job
bool accepted[2], refused[2], over, dead, dead_too;

#define USED (reserved - written_off - out[0] - out[1] - out[2])
// What is there for good: waiting or in uncommitted hands, and what a committed batch has yet to publish.
inline check_bound() {
  d_step {
    i = 0; c = 0;
    do
    :: i < JOBS ->
      if
      :: job[i] == available -> c++
      :: job[i] == moving && commit[owner[i]] != 2 -> c++
      :: job[i] == filling && commit[owner[i]] != 0 -> c++
      :: else
      fi;
      i++
    :: else -> break
    od;
    assert(c <= MAX);
    i = 0; c = 0
  }
}

inline settle(p) {
  if
  :: atomic { refill > 0 -> d = refill; w = written_off; r = reserved;
       if :: (p != 0 && intent[0] == admitting) || (p != 1 && intent[1] == admitting) -> goto settled :: else fi };
     d_step { c = in_reserved[0] + in_reserved[1] + START };
     d_step { if :: reserved == r && written_off == w -> written_off = r - c :: else -> d = NONE fi };
     d_step { if :: refill == d -> refill = 0 :: else fi }
  :: atomic { refill == 0 }
  fi;
}

proctype Producer(byte me) {
  byte cost, held, r, w, d, c, u, i, v, refused_at, victims, at_least;
  bool won;
  {
    cost = OF(me);
    d_step { before[me] = in_reserved[me]; commit[me] = 0; intent[me] = admitting };
    // admit
    settle(me);
settled: skip;
    do
    :: atomic { r = reserved; u = USED; if :: u + cost > MAX -> break :: else fi };
       atomic { won = reserved == r; if :: won -> reserved = r + cost; goto charged :: else fi }
    od;
#ifndef MUTANT_NO_SEAT
end_seat:
    atomic { seat == NONE -> seat = me };
#endif
    do
    :: atomic { r = reserved; at_least = USED };
       atomic { u = USED - reserved + r };
#ifndef MUTANT_OLD_SUM_BELIEVED
       atomic { if :: u + cost > MAX + held && reserved != r -> goto next :: else fi };
#endif
       if
       :: atomic { u + cost <= MAX + held -> won = reserved == r; if :: won -> reserved = r + cost; break :: else fi }
       :: u + cost > MAX + held ->
          d_step {
            assert(at_least + cost > MAX + held);  // there was no room when it looked
            v = 0;
            do :: v < JOBS && job[v] != available -> v++ :: else -> break od
          };
          if
          :: atomic { v < JOBS ->
#ifdef MUTANT_GONE_AT_ONCE
               if :: job[v] == available -> job[v] = dropped; dropped_by[me]++; held++; victims = victims | 1 << v :: else fi
#else
               if :: job[v] == available -> job[v] = moving; owner[v] = me; held++; victims = victims | 1 << v :: else fi
#endif
             }
          :: atomic { v == JOBS && u + 1 == refused_at -> goto refuse }
          :: atomic { v == JOBS && u + 1 != refused_at -> refused_at = u + 1 }
          fi
       fi;
next:  v = 0
    od;
charged:
    in_reserved[me] = in_reserved[me] + cost;
    intent[me] = batching;
    i = 0;
    do
    :: i < cost -> d_step { job[FIRST_OF(me) + i] = filling; owner[FIRST_OF(me) + i] = me; i++ }
    :: FAILS > 0 && i < cost -> goto no_slot
    :: atomic { i == cost -> i = 0; break }
    od;
#ifdef MUTANT_VICTIMS_COMMITTED_LATER
    commit[me] = 1;
#endif
    if
    :: victims == 0 -> commit[me] = 1
    :: else ->
      out_shall[me] = out[me] + held;
      count_shall[me] = dropped_by[me] + held;
      commit[me] = 2;
      out[me] = out_shall[me];
      dropped_by[me] = count_shall[me]
    fi;
    accepted[me] = true;
    atomic { if :: seat == me -> seat = NONE :: else fi };
    check_bound();
    do
    :: i < cost -> atomic { job[FIRST_OF(me) + i] = available; owner[FIRST_OF(me) + i] = NONE; i++ }
    :: atomic { i == cost -> i = 0; break }
    od;
    do
    :: i < JOBS ->
       atomic { if :: (victims >> i & 1) != 0 && job[i] == moving -> job[i] = dropped; owner[i] = NONE :: else fi; i++ }
    :: atomic { i == JOBS -> i = 0; break }
    od;
    intent[me] = nothing;
    goto done;
no_slot:
    intent[me] = admitting;  // kEnqueue, to be undone all the same
    commit[me] = out[me] + cost;
    intent[me] = giving_back;
    out[me] = commit[me];
    do
    :: i > 0 -> d_step { i--; job[FIRST_OF(me) + i] = nowhere; owner[FIRST_OF(me) + i] = NONE }
    :: else -> break
    od;
refuse:
    intent[me] = nothing;
    i = 0;
    do
    :: i < JOBS ->
       if
       :: (victims >> i & 1) != 0 && job[i] == moving ->
          d_step { moves[me] = i; commit[me] = 0; intent[me] = moving_back };
          d_step { job[i] = available; owner[i] = NONE };
          intent[me] = nothing
       :: else
       fi;
       i++
    :: else -> break
    od;
    atomic { if :: seat == me -> seat = NONE :: else fi };
    refused[me] = true;
done: skip;
    if :: me == VICTIM -> over = true :: else fi
  } unless { (me == VICTIM && dead) }
}

proctype Fetcher() {
  byte v, n;
  do
  :: atomic { n == FETCHER -> break }
  :: n < FETCHER ->
  n++;
  d_step { v = 0; do :: v < JOBS && job[v] != available -> v++ :: else -> break od };
  if
  :: v < JOBS ->
    d_step { if :: job[v] == available -> job[v] = taken :: else -> v = JOBS fi };
    if :: v < JOBS -> out[FETCHING]++ :: else fi
  :: else
  fi
  od
}

proctype Killer() {
  atomic { if :: VICTIM == 0 && !over -> dead = true :: true fi };
  atomic { if :: REPAIRERS > 1 && dead -> dead_too = true :: true fi }
}

inline repair() {
#ifdef MUTANT_INTENT_CLEARED_FIRST
  d_step { x = intent[0]; intent[0] = nothing };
#else
  x = intent[0];
#endif
  if
  :: x == nothing
  :: x == moving_back ->
     d_step { if :: job[moves[0]] == moving && owner[moves[0]] == 0 -> job[moves[0]] = available; owner[moves[0]] = NONE :: else fi }
  :: x == admitting || x == giving_back || (x == batching && commit[0] == 0) ->
     if :: x == giving_back -> out[0] = commit[0] :: else -> in_reserved[0] = before[0] fi;
     refill++
#ifdef MUTANT_UNCOMMITTED_DROPPED
     ; i = 0;
     do
     :: i < JOBS -> d_step { if :: job[i] == moving && owner[i] == 0 -> job[i] = dropped; owner[i] = NONE; dropped_by[0]++ :: else fi; i++ }
     :: else -> break
     od
#endif
  :: x == batching && commit[0] != 0 ->
     i = 0;
     do
     :: i < JOBS -> d_step { if :: job[i] == filling && owner[i] == 0 -> job[i] = available; owner[i] = NONE :: else fi; i++ }
     :: else -> break
     od;
     if
     :: commit[0] == 2 ->
#ifdef MUTANT_OUT_ADDED
        out[0] = out[0] + count_shall[0] - dropped_by[0];
        i = 0;
#else
        out[0] = out_shall[0];
#endif
        dropped_by[0] = count_shall[0];
        i = 0;
        do
        :: i < JOBS -> d_step { if :: job[i] == moving && owner[i] == 0 -> job[i] = dropped; owner[i] = NONE :: else fi; i++ }
        :: else -> break
        od
     :: else
     fi
  fi;
  intent[0] = nothing;
  i = 0;
  do
  :: i < JOBS ->
     if
     :: owner[i] == 0 && job[i] == filling -> d_step { job[i] = nowhere; owner[i] = NONE }
     :: owner[i] == 0 && job[i] == moving ->
        d_step { moves[0] = i; commit[0] = 0; intent[0] = moving_back };
        d_step { job[i] = available; owner[i] = NONE };
        intent[0] = nothing
     :: else
     fi;
     i++
  :: else -> break
  od;
  atomic { if :: seat == 0 -> seat = NONE :: else fi };
  settle(0);
settled: skip
}
proctype Repairer() {
  mtype x = nothing;
  byte i, c, d, w, r;
end:
  dead;
  { repair() } unless { dead_too }
}
proctype Again() {
  mtype x = nothing;
  byte i, c, d, w, r;
end:
  dead_too;
  repair()
}

proctype Judge() {
  byte i, c, there, gone, left;
  timeout;
  d_step {
    do
    :: i < JOBS ->
      assert(job[i] != filling && job[i] != moving);
      if :: job[i] == available -> there++ :: else fi;
      if :: job[i] == dropped -> gone++ :: else fi;
      if :: job[i] == taken -> left++ :: else fi;
      if :: i >= START && i < START + BATCH && job[i] == nowhere -> c++ :: else fi;
      i++
    :: else -> break
    od;
    assert(there <= MAX);
    assert(c == 0 || c == BATCH);
    assert(gone == dropped_by[0] + dropped_by[1]);
    assert(refill > 0 || USED == there);
    assert(seat == NONE);
    assert(there + gone + left == START + BATCH - c + (job[JOBS - 1] != nowhere || SECOND == 0 -> SECOND : 0));
    // With no process dead and no process fetching: exactly as many as were too many.
    assert(dead || FETCHER > 0 || FAILS > 0 || gone == (there + gone > MAX -> there + gone - MAX : 0));
    assert(dead || FETCHER > 0 || FAILS > 0 || there == MAX)
  }
}

init {
  byte i;
  atomic {
    do :: i < START -> job[i] = available; i++ :: else -> break od;
    run Producer(0);
    if :: SECOND > 0 -> run Producer(1) :: else fi;
    if :: FETCHER > 0 -> run Fetcher() :: else fi;
    run Killer();
    run Repairer();
    run Again();
    run Judge()
  }
}
