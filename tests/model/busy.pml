// SPDX-License-Identifier: Apache-2.0
//
// Which queues a pool passes over: two bits of a word that it shares with other queues. A fetch that found nothing
// announces that it is about to call the queue quiet, looks, and says so unless the word has moved; whoever makes a job
// available reads the bits afterwards, and takes back what they say.
//   producer  Bell::mark_busy, set_busy               fetcher  Fetcher::fetch_from_pool; Search::settle_quiet
//   neighbour the same of another queue in the word   repairer Repairer::repair step 4, wake_all
//
// Proved: no queue is called quiet while a job stands in it whose enqueue has returned; at the end not even a job whose
// producer died, once it is repaired. A look at the queue is one step: `levels` shows that it may be taken for one.
#ifndef PRODUCERS
#define PRODUCERS 2
#define FETCHERS 2
#define ROUNDS 2    // fetches of the first fetcher
#define ROUNDS_2 1  // of the second
#define NEIGHBOUR 0
#define VICTIM 9  // 0 ..: a producer; 9: nobody
#endif
#define QUIET 0
#define BUSY 1
#define QUIETING 2

byte ours = BUSY, theirs = BUSY, version;  // the word
bool there[3], returned[3];                // a job for each producer
bool dead, over;

#define SAME(o, t, v) (ours == o && theirs == t && version == v)
#define ANY (there[0] || there[1] || there[2])
#define VISIBLE (ours != QUIET || \
                 !((there[0] && returned[0]) || (there[1] && returned[1]) || (there[2] && returned[2])))

#ifdef MUTANT_NO_VERSION
#define MOVED version
#else
#define MOVED version + 1
#endif

inline set_busy() {
  do
  :: o == BUSY -> break
  :: o != BUSY ->
     atomic {
       if
       :: SAME(o, t, v) -> ours = BUSY; version = MOVED; o = BUSY
       :: else -> o = ours; t = theirs; v = version
       fi
     }
  od
}

inline mark_busy() {
  d_step { o = ours; t = theirs; v = version };
  set_busy()
}

proctype Producer(byte me) {
  byte o, t, v;
  {
#ifdef MUTANT_MARKED_FIRST
    mark_busy();
#endif
    there[me] = true;
#ifndef MUTANT_MARKED_FIRST
    mark_busy();
#endif
    atomic { returned[me] = true; o = 0; t = 0; v = 0; assert(VISIBLE) };
    if :: me == VICTIM -> over = true :: else fi
  } unless { (me == VICTIM && dead) }
}

proctype Fetcher(byte rounds) {
  byte round, o, t, v, i;
  bool done, seen;
  do
  :: round < rounds ->
     round++;
     d_step { o = ours; t = theirs; v = version; seen = false };
     if
     :: o == QUIET -> skip
     :: else ->
        d_step {  // the fetch
          i = 0;
          do
          :: i < 3 && there[i] -> there[i] = false; seen = true; break
          :: i < 3 && !there[i] -> i++
          :: else -> break
          od;
          i = 0
        };
        if
        :: seen -> skip
        :: else ->  // settle_quiet
#ifdef MUTANT_LOOK_FIRST
           seen = ANY;
#endif
           d_step { o = ours; t = theirs; v = version };
#ifndef MUTANT_NOT_ANNOUNCED
           d_step {
             if
             :: o == BUSY && SAME(o, t, v) -> ours = QUIETING; o = QUIETING; done = true
             :: o == QUIETING -> done = true
             :: else
             fi
           };
#else
           done = (o != QUIET);
#endif
           if
           :: !done -> skip
           :: else ->
              done = false;
#ifndef MUTANT_LOOK_FIRST
              seen = ANY;
#endif
              if
              :: seen -> set_busy()
#ifdef MUTANT_SAID_BY_STORE
              :: else -> d_step { ours = QUIET; assert(VISIBLE) }
#else
              :: else -> d_step { if :: SAME(o, t, v) -> ours = QUIET; assert(VISIBLE) :: else fi }
#endif
              fi
           fi
        fi
     fi;
     atomic { o = 0; t = 0; v = 0; done = false; seen = false }
  :: else -> break
  od
}

// Another queue in the same word becomes quiet, and busy again.
proctype Neighbour() {
  d_step { theirs = QUIETING };
  d_step { if :: theirs == QUIETING -> theirs = QUIET :: else fi };
  d_step { theirs = BUSY; version++ }
}

proctype Killer() {
  atomic { if :: VICTIM < 9 && !over -> dead = true :: true fi }
}
proctype Repairer() {
  byte o, t, v;
end:
  dead;
#ifndef MUTANT_REPAIR_MARKS_NOTHING
  mark_busy()
#else
  skip
#endif
}

proctype Last() {
  timeout;
  assert(ours != QUIET || !ANY)
}

init {
  atomic {
    run Producer(0);
    if :: PRODUCERS > 1 -> run Producer(1) :: else fi;
    if :: PRODUCERS > 2 -> run Producer(2) :: else fi;
    run Fetcher(ROUNDS);
    if :: FETCHERS > 1 -> run Fetcher(ROUNDS_2) :: else fi;
    if :: NEIGHBOUR -> run Neighbour() :: else fi;
    if :: VICTIM < 9 -> run Killer(); run Repairer() :: else fi;
    run Last()
  }
}
