// SPDX-License-Identifier: Apache-2.0
//
// The bound of a queue: one contended word, `reserved`, that admissions move by cas; tallies with one writer each;
// and the recount after a death between the two. Each job costs one; the bound is MAX.
//   producer  Actor::enqueue; Room::admit, take_back_admission
//   fetcher   Fetcher::fetch; StraightFetch::take; Changer::set_back; Mover::charge_return
//   settle    Room::settle_reserved                             repairer  Repairer::repair, undo_tallies, repair_shared
// One lane may be killed at any step of its operation. Lanes 0 and 1 are producers that live, lane 2 is the
// victim's, a producer or a fetcher, and afterwards its repairer's.
//
// Proved: `reserved` is never below the sum of what the lanes reserved; no enqueue brings the queue above its bound,
// but for jobs that came back; and when all is quiet again, an enqueue is accepted exactly when the queue is not
// full.
#ifndef MAX
#define MAX 3
#define TRIES_0 0   // enqueues of the producers, each of which may fail after its admission
#define TRIES_1 1
#define FETCHER 0   // 1: the victim is a fetcher, else a producer
#define WAITING 1   // jobs at first
#endif
#define LANES 3
#define VICTIM 2
#define NONE 0      // intents
#define ADMIT 1
#define ENQUEUE 2
#define TAKE_BACK 3
#define FETCH 4
#define RETURN 5

byte reserved = WAITING, written_off, refill, epoch;
byte in_reserved[LANES], out[LANES];
byte intent[LANES], data_in[LANES], data_out[LANES];
byte waiting = WAITING;   // available jobs: the truth
byte returned;            // ghost
bool job_held, dead, over;
byte running;

hidden byte i, s;

inline never_too_low() {
  s = 0;
  i = 0;
  do :: i < LANES -> s = s + in_reserved[i]; i++ :: else -> break od;
  assert(reserved - written_off >= s);
  s = 0;
  i = 0
}

inline settle() {
  mark = refill;
  old = written_off;
  r = reserved;
  l = 0;
  ok = true;
  do
  :: l < LANES ->
    if :: l != me && (intent[l] == ADMIT || intent[l] == RETURN) -> ok = false; break :: else fi;
    l++
  :: else -> break
  od;
  if
  :: ok ->
    sum = 0;
    l = 0;
    do :: l < LANES -> d_step { sum = sum + in_reserved[l]; l++ } :: else -> break od;
    atomic {
#ifdef MUTANT_RECOUNT
      ok = (sum == r || reserved == r);
      if :: sum != r && reserved == r -> reserved = sum :: else fi;
#else
      ok = (reserved == r)
    };
    atomic {
      if :: ok && written_off == old -> written_off = r - sum :: else -> ok = false fi;
#endif
      never_too_low()
    };
    if
    :: ok ->
#ifdef MUTANT_RECOUNT
      refill = 0
#else
      d_step { if :: refill == mark -> refill = 0 :: else fi }
#endif
    :: else
    fi
  :: else
  fi;
  atomic { mark = 0; old = 0; r = 0; l = 0; sum = 0; ok = false }
}

// Leaves `ok`: admitted. `cache` is what the lanes took out, as this one last saw it.
inline admit() {
  if :: refill != 0 -> settle() :: else fi;
  flags = epoch;
  fresh = false;
  do
  :: r = reserved;
    if
    :: cache_epoch != flags || fresh ->
      d_step {  // `out` rises by one at a time, so a sum read word by word is the sum of some instant
        cache = written_off;
        do :: l < LANES -> cache = cache + out[l]; l++ :: else -> break od;
        cache_epoch = flags;
        l = 0
      }
    :: else
    fi;
    if
    :: r + 1 > MAX + cache && !fresh -> fresh = true
    :: r + 1 > MAX + cache && fresh -> ok = false; break
    :: else ->
#ifdef MUTANT_ADD_INSTEAD_OF_CAS
      d_step { ok = true; reserved++ };
#else
      d_step { ok = (reserved == r); if :: ok -> reserved++ :: else fi };
#endif
      if :: ok -> break :: else -> flags = epoch fi
    fi
  od;
  if :: ok -> in_reserved[me]++ :: else fi;
  atomic { r = 0; fresh = false; flags = 0 }
}

inline enqueue(may_fail) {
  d_step { data_in[me] = in_reserved[me]; intent[me] = ADMIT };  // the data first: means nothing without the intent
  admit();
  if
  :: ok ->
    intent[me] = ENQUEUE;
    if
    :: d_step { waiting++; assert(waiting <= MAX + returned); intent[me] = NONE }
    :: may_fail ->  // no slot, no block, a duplicate id
#ifdef MUTANT_TAKEN_BACK_FROM_RESERVED
      intent[me] = ADMIT;
      in_reserved[me] = data_in[me];
      d_step { reserved--; never_too_low() };
#else
      d_step { data_out[me] = out[me]; intent[me] = TAKE_BACK };
      out[me] = data_out[me] + 1;
#endif
      intent[me] = NONE
    fi
  :: else -> intent[me] = NONE
  fi
}

proctype Producer(byte me, tries) {
  byte n, r, l, sum, mark, old, flags, cache, cache_epoch = 255;
  bool fresh, ok, is_full;
  {
    do
    :: n < tries -> enqueue(true); atomic { n++; ok = false }
    :: else -> break
    od;
    if
    :: me == VICTIM -> over = true
    :: else
    fi;
    running--;
    if
    :: me == 0 ->  // the last word, with what it has cached
      running == 0;
      is_full = (waiting >= MAX);
      enqueue(false);
      assert(is_full == !ok)
    :: else
    fi
  } unless {
    atomic {
      (me == VICTIM && dead) -> n = 0; r = 0; l = 0; sum = 0; mark = 0; old = 0; flags = 0; cache = 0; cache_epoch = 0;
      fresh = 0; ok = 0
    }
  }
}

inline charge_return() {
  d_step { reserved++ };
  in_reserved[me]++
}

proctype Fetcher(byte me) {
  {
    d_step { data_out[me] = out[me]; intent[me] = FETCH };
    d_step { waiting--; job_held = true };  // the claim
    out[me]++;
    intent[me] = NONE;  // the job is active
    if
    :: job_held = false  // ack
    :: d_step { data_in[me] = in_reserved[me]; intent[me] = RETURN };
      charge_return();
      d_step { job_held = false; waiting++; returned++; intent[me] = NONE }
    fi;
    over = true;
    running--
  } unless { atomic { dead -> skip } }
}

proctype Killer() {
  atomic { if :: !over -> dead = true :: true fi }
}

proctype Repairer(byte me) {
  byte r, l, sum, mark, old;
  bool ok;
end:
  dead;
  if  // undo_tallies
  :: intent[VICTIM] == ADMIT || intent[VICTIM] == ENQUEUE || intent[VICTIM] == RETURN ->
    d_step { in_reserved[VICTIM] = data_in[VICTIM]; never_too_low() };
#ifndef MUTANT_UNDONE_WITHOUT_RECOUNT
    d_step { refill++ }
#endif
  :: intent[VICTIM] == TAKE_BACK -> out[VICTIM] = data_out[VICTIM] + 1
  :: intent[VICTIM] == FETCH ->
    out[VICTIM] = data_out[VICTIM];
#ifndef MUTANT_CACHE_KEPT
    epoch++
#endif
  :: else
  fi;
  if
  :: job_held && intent[VICTIM] == FETCH -> d_step { job_held = false; waiting++; returned++ }
  :: job_held && intent[VICTIM] != FETCH ->
    d_step { data_in[me] = in_reserved[me]; intent[me] = RETURN };
    charge_return();
    d_step { job_held = false; waiting++; returned++; intent[me] = NONE }
  :: else
  fi;
  intent[VICTIM] = NONE;
  if :: refill != 0 -> settle() :: else fi;
  running--
}

init {
  atomic {
    in_reserved[0] = WAITING;
    running = 2 + (TRIES_1 > 0);
    run Producer(0, TRIES_0);
    if :: TRIES_1 > 0 -> run Producer(1, TRIES_1) :: else fi;
    if :: FETCHER -> run Fetcher(VICTIM) :: else -> run Producer(VICTIM, 1) fi;
    run Repairer(VICTIM);
    run Killer()
  }
}
