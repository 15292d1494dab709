// SPDX-License-Identifier: Apache-2.0
//
// Parking and letting go: a worker claims a job and asks its key for a permit. Without one it puts the job into the
// key's lot and looks for room once more; whoever gives a permit back then looks into the lot and lets one job go, which
// is claimed like any other and asks again. Whoever dies is repaired: what he held comes back, which makes his permit
// nobody's, and then the repair looks into the lot.
//   worker    LimitGate::pass_limits, take_limits, hold_back, follow_dispatch, give_limits, let_begin, unpark
//   repairer  Repairer::repair, mend_limits, Permits::sweep
// A permit is taken and a job is claimed in one step each: one cas decides. All jobs have one level and one queue.
//
// Proved: never more than LIMIT jobs are at work; and when nothing moves any more no job is left, neither in its ring nor in
// the lot, also when one worker is killed at any step, once it has been repaired.
#ifndef WORKERS
#define WORKERS 2
#define JOBS 3
#define LIMIT 1
#define VICTIM 0  // a worker; 9: nobody
#endif
#define NOBODY 9

mtype = { ring, lot, claimed, working, moving, done };
mtype state[JOBS] = ring;
byte holder[JOBS] = NOBODY;
byte permit[LIMIT] = NOBODY;  // the job that has it
byte at_work;
bool dead, repaired;

// A permit whose job no process holds is free, and one of an earlier hold of this job, whose holder died, is its own.
#define HELD(j) (state[j] == claimed || state[j] == working)
#define FREE(p) (permit[p] == NOBODY || !HELD(permit[p]))

inline has_room() {
  d_step { room = false; p = 0; do :: p < LIMIT -> room = room || FREE(p); p++ :: else -> break od; p = 0 }
}

// One job of the lot goes back to its ring, in two steps, between which its mover may die.
inline unpark() {
  d_step {
    u = 0;
    do :: u < JOBS && state[u] != lot -> u++ :: else -> break od;
    if :: u < JOBS -> state[u] = moving; holder[u] = me :: else fi
  };
  if :: u < JOBS -> d_step { state[u] = ring; holder[u] = NOBODY } :: else fi;
  u = 0
}

inline look_into_the_lot() {
  has_room();
  if :: room -> unpark() :: else fi
}

#ifdef MUTANT_OWN_PERMIT_IN_THE_WAY
#define MAY_TAKE(p) FREE(p)
#else
#define MAY_TAKE(p) (FREE(p) || permit[p] == j)
#endif
inline take_permit() {
#ifdef MUTANT_PERMIT_WITHOUT_CAS
  d_step { p = 0; do :: p < LIMIT && !MAY_TAKE(p) -> p++ :: else -> break od; got = p < LIMIT };
  if :: got -> permit[p] = j :: else fi;
#else
  d_step {
    p = 0;
    do :: p < LIMIT && !MAY_TAKE(p) -> p++ :: else -> break od;
    got = p < LIMIT;
    if :: got -> permit[p] = j :: else fi
  };
#endif
  p = 0
}

inline give_permit() {
  d_step {
    p = 0;
    do :: p < LIMIT -> if :: permit[p] == j -> permit[p] = NOBODY :: else fi; p++ :: else -> break od;
    p = 0
  }
}

#define WAITING(j) ((j) < JOBS && state[(j) % JOBS] == ring)

inline claim(n) { j = n; state[j] = claimed; holder[j] = me }

proctype Worker(byte me) {
  byte j, p, u;
  bool got, room;
  {
  end:
    do
    :: atomic {
         WAITING(0) || WAITING(1) || WAITING(2) || WAITING(3) ->
         if :: WAITING(0) -> claim(0) :: WAITING(1) -> claim(1) :: WAITING(2) -> claim(2) :: WAITING(3) -> claim(3) fi
       };
      take_permit();
      if
      :: got ->
        atomic { state[j] = working; at_work++; assert(at_work <= LIMIT) };
#ifdef MUTANT_LOOK_BEFORE_GIVING
        look_into_the_lot();
#endif
        atomic { at_work--; give_permit(); state[j] = moving };
        d_step { state[j] = done; holder[j] = NOBODY };
#ifndef MUTANT_LOOK_BEFORE_GIVING
        look_into_the_lot()
#endif
      :: else ->
        d_step { state[j] = lot; holder[j] = NOBODY };
#ifndef MUTANT_NO_SECOND_LOOK
        look_into_the_lot()
#endif
      fi;
      atomic { j = 0; p = 0; u = 0; got = false; room = false }
    od
  } unless { atomic { (me == VICTIM && dead) -> j = 0; p = 0; u = 0; got = false; room = false } }
}

proctype Killer() {
  atomic { if :: VICTIM != NOBODY -> dead = true :: true fi }
}

// Not killed: what he has done so far only makes the work of the next one shorter.
proctype Repairer() {
  byte me = WORKERS, j, p, u;
  bool room;
end:
  dead;
  do
  :: j < JOBS ->
    d_step {
      if
      :: holder[j] == VICTIM ->
        if :: state[j] == working -> at_work-- :: else fi;
        state[j] = ring;
        holder[j] = NOBODY
      :: else
      fi
    };
    j++
  :: else -> break
  od;
  j = 0;
#ifndef MUTANT_REPAIR_LOOKS_NOT
  look_into_the_lot();
#endif
  repaired = true
}

// Runs when nothing else can.
proctype Judge() {
  byte j;
  timeout;
  d_step { do :: j < JOBS -> assert(state[j] == done); j++ :: else -> break od }
}

init {
  byte i;
  atomic {
    do :: i < WORKERS -> run Worker(i); i++ :: else -> break od;
    run Killer();
    run Repairer();
    run Judge()
  }
}
