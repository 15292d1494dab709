// SPDX-License-Identifier: Apache-2.0
//
// Sleep and wake: a sleeper sets its bit among the waiters of each of its queues, looks once more, and sleeps on its
// own futex; whoever publishes a job then reads the waiters and wakes one; whoever was chosen but found work by
// itself hands the wake on. No timeout is in here: the code's 100 ms are for what this model shows to be lost by a
// kill.
//   worker    Worker::fetch, Sleeper::lie_down, sees_work, get_up, wake_another      producer  Actor::enqueue, wake_one
//   repairer  Attachment::repair_the_dead, Repairer::repair step 4, wake_all
// A look or a fetch is one step here: levels.pml proves that it may be taken for one. A worker that has got a job
// stays with it: it may work for an hour.
//
// Proved: when nothing moves any more, no job is available in a queue for which a process sleeps; also when one
// process is killed at any step, once it has been repaired.
#ifndef WORKERS
#define WORKERS 2
#define QUEUES 2
#define JOBS 2       // one producer each; bit j of IN: the queue of job j
#define IN 2
#define ORDER 0      // bit w: worker w looks at queue 1 first
#define ONLY 4       // bit 2 * w + q: worker w does not serve queue q
#define VICTIM 9     // 0 .. WORKERS - 1: a worker; 4 + j: the producer of job j; 9: nobody
#endif
#define NOBODY 9

byte available[QUEUES];
byte waiters[QUEUES];  // a bit for each worker
byte park[WORKERS];
bool asleep[WORKERS];
bool dead, over;

#define BIT(w) (1 << (w))
#define SERVES(w, q) (!((ONLY >> (2 * (w) + (q))) & 1))

inline wake_one(q) {
  b = waiters[q];
  do
  :: b != 0 ->
    d_step { w = 0; do :: !((b >> w) & 1) -> w++ :: else -> break od };  // the lowest bit
    d_step { b = waiters[q]; waiters[q] = waiters[q] & ~BIT(w) };
    if
    :: (b >> w) & 1 -> park[w]++; asleep[w] = false; break
    :: else
    fi
  :: else -> break
  od;
  atomic { b = 0; w = 0 }
}

inline fetch_from(q) {
  d_step { if :: !got && SERVES(me, q) && available[q] > 0 -> available[q]--; got = true :: else fi }
}
inline sees_work_in(q) {
  d_step { if :: SERVES(me, q) && available[q] > 0 -> sees = true :: else fi }
}
inline leave(q) {
  d_step {
    if :: SERVES(me, q) && !(waiters[q] & BIT(me)) -> chosen = true :: else fi;
    waiters[q] = waiters[q] & ~BIT(me)
  }
}

proctype Worker(byte me) {
  byte before, first, b, w, q;
  bool got, sees, slept, chosen;
  {
    first = (QUEUES > 1 -> (ORDER >> me) & 1 : 0);
    do
    ::
#ifndef MUTANT_PARK_READ_LATE
      before = park[me];
#endif
#ifndef MUTANT_LOOK_BEFORE_LYING_DOWN
      q = 0;
      do  // lie_down
      :: q < QUEUES -> d_step { if :: SERVES(me, q) -> waiters[q] = waiters[q] | BIT(me) :: else fi; q++ }
      :: else -> break
      od;
#endif
      sees_work_in(first);
      if :: QUEUES > 1 && !sees -> sees_work_in(1 - first) :: else fi;
#ifdef MUTANT_LOOK_BEFORE_LYING_DOWN
      q = 0;
      do
      :: q < QUEUES -> d_step { if :: SERVES(me, q) -> waiters[q] = waiters[q] | BIT(me) :: else fi; q++ }
      :: else -> break
      od;
#endif
#ifdef MUTANT_PARK_READ_LATE
      before = park[me];
#endif
      if
      :: !sees ->
        slept = true;
        d_step { if :: park[me] == before -> asleep[me] = true :: else fi };  // futex_wait
      end_sleep:
        !asleep[me]
      :: else
      fi;
      leave(0);
      if :: QUEUES > 1 -> leave(1) :: else fi;
      fetch_from(first);
      if :: QUEUES > 1 && !got -> fetch_from(1 - first) :: else fi;
      if
#ifdef MUTANT_WAKE_KEPT
      :: got
#else
#ifdef MUTANT_SLEEPER_KEEPS_WAKE
      :: got && chosen && !slept ->
#else
      :: got && chosen && (!slept || QUEUES > 1) ->
#endif
        q = 0;
        do  // wake_another
        :: q < QUEUES ->
          sees = false;
          sees_work_in(q);
          if :: sees -> wake_one(q) :: else fi;
          q++
        :: else -> break
        od
#endif
      :: else
      fi;
      if :: got -> break :: else fi;
      atomic { before = 0; sees = false; slept = false; chosen = false; q = 0 }
    od;
    if :: me == VICTIM -> over = true :: else fi
  } unless {
    atomic {
      (me == VICTIM && dead) -> asleep[me] = false; before = 0; first = 0; b = 0; w = 0; q = 0;
      got = 0; sees = 0; slept = 0; chosen = 0
    }
  }
}

proctype Producer(byte j) {
  byte b, w, q;
  {
    q = (QUEUES > 1 -> (IN >> j) & 1 : 0);
#ifdef MUTANT_WAKE_BEFORE_PUSH
    wake_one(q);
#endif
    available[q]++;
#ifndef MUTANT_WAKE_BEFORE_PUSH
    wake_one(q);
#endif
    if :: 4 + j == VICTIM -> over = true :: else fi
  } unless { atomic { (4 + j == VICTIM && dead) -> b = 0; w = 0; q = 0 } }
}

proctype Killer() {
  atomic { if :: VICTIM != NOBODY && !over -> dead = true :: true fi }
}

proctype Repairer() {
  byte q, b, w;
end:
  dead;
  do
  :: q < QUEUES ->
    if :: VICTIM < WORKERS -> waiters[q] = waiters[q] & ~BIT(VICTIM) :: else fi;
#ifndef MUTANT_REPAIR_WAKES_NOBODY
    d_step { b = waiters[q]; waiters[q] = 0 };  // wake_all
    w = 0;
    do
    :: w < WORKERS && ((b >> w) & 1) -> park[w]++; asleep[w] = false; w++
    :: w < WORKERS && !((b >> w) & 1) -> w++
    :: else -> break
    od;
#endif
    q++
  :: else -> break
  od
}

// Runs when nothing else can.
proctype Judge() {
  byte q, w;
  timeout;
  d_step {
    do
    :: q < QUEUES ->
      w = 0;
      do
      :: w < WORKERS -> assert(!(available[q] > 0 && asleep[w] && SERVES(w, q))); w++
      :: else -> break
      od;
      q++
    :: else -> break
    od
  }
}

init {
  byte i;
  atomic {
    do :: i < WORKERS -> run Worker(i); i++ :: else -> break od;
    i = 0;
    do :: i < JOBS -> run Producer(i); i++ :: else -> break od;
    run Killer();
    run Repairer();
    run Judge()
  }
}
