// SPDX-License-Identifier: Apache-2.0
//
// The join of a workflow: two jobs that end at once, the third that comes after both, and the head, whose slot is used
// again as soon as it is listed.
//   ender     Mover::land, WorkflowProgress::mark, advance, release, end_if_done, close
//   repairer  Repairer::repair, WorkflowProgress::mark_again, mend
// Two jobs end in two processes; the third is ended by whoever finds it available. One of the three may die at any
// step after it has said that its job is to end, and its repairer too.
//
// Proved: when nothing moves any more, the third job was let run exactly once and has ended, the head was ended once
// and is listed, and no bit was written after the head had gone.
#ifndef VICTIM
#define VICTIM 9  // 0, 1: a process that ends one of the first two; 2: that of the third; 9: nobody
#define REPAIRERS 1
#endif

mtype = { WAITING, MOVING, AVAILABLE, ACTIVE };
mtype = { NOTHING, WHOLE, RELEASE, CLOSE };

mtype third = WAITING;
byte owner = 9;
mtype intent[3] = NOTHING;
bool ended[3], started[3], over[3];
byte done;  // a bit for each of the three
bool running = true, listed, gone;
byte released, ends;
bool dead;
byte repairs;

#define BIT(m) (1 << (m))

inline mark(m) { atomic { assert(!gone); done = done | BIT(m) } }

inline release(me) {
  intent[me] = RELEASE;
#ifdef MUTANT_RELEASE_WITHOUT_CAS
  if
  :: third == WAITING ->
     third = MOVING; owner = me; won = true
  :: else
  fi;
#else
  atomic { if :: third == WAITING -> third = MOVING; owner = me; won = true :: else fi };
#endif
  if :: won -> atomic { third = AVAILABLE; owner = 9; released++; won = false } :: else fi;
  intent[me] = NOTHING
}

inline end_if_done(me) {
  if
  :: done == 7 && !gone ->
     intent[me] = CLOSE;
     atomic { if :: running -> running = false; ends++ :: else fi };
     if :: !running -> listed = true :: else fi;
     intent[me] = NOTHING
  :: else
  fi
}

inline advance(me) {
  if :: (done & 3) == 3 -> release(me) :: else fi;
  end_if_done(me)
}

proctype Ender(byte me) {
  bool won, both;
  {
    if
    :: me == 2 -> atomic { third == AVAILABLE -> third = ACTIVE }
    :: else
    fi;
    atomic { intent[me] = WHOLE; started[me] = true };
    ended[me] = true;
#ifdef MUTANT_LOOK_BEFORE_MARK
    both = ((done | BIT(me)) & 3) == 3;
    mark(me);
    intent[me] = NOTHING;
    if :: both -> release(me) :: else fi;
    end_if_done(me);
#else
    mark(me);
    intent[me] = NOTHING;
    advance(me);
#endif
    over[me] = true
  } unless { atomic { me == VICTIM && dead } }
}

proctype Killer() {
  atomic { if :: VICTIM < 3 && started[VICTIM] && !over[VICTIM] -> dead = true :: true fi }
}

// In the name of the dead lane. One that dies leaves the same lane to the next.
proctype Repairer() {
  bool won;
  byte n;
end:
  dead && !over[VICTIM];
again:
  {
    if
    :: intent[VICTIM] == WHOLE ->
       ended[VICTIM] = true;
#ifdef MUTANT_MARKED_TWICE
       mark(VICTIM)
#else
#ifndef MUTANT_NOT_MARKED_AGAIN
       atomic { if :: !gone && !(done & BIT(VICTIM)) -> done = done | BIT(VICTIM) :: else fi }
#endif
#endif
    :: intent[VICTIM] == CLOSE -> if :: !running && !gone && done == 7 -> listed = true :: else fi
    :: else
    fi;
    if :: third == MOVING && owner == VICTIM -> atomic { third = WAITING; owner = 9 } :: else fi;
    intent[VICTIM] = NOTHING;
#ifndef MUTANT_NOT_MENDED
    if :: !gone && running -> advance(VICTIM) :: else fi;
#endif
    over[VICTIM] = true
  } unless { atomic { repairs < REPAIRERS - 1 && n == 0 -> repairs++; n = 1; won = false } };
  if :: !over[VICTIM] -> goto again :: else fi
}

// A process that needs a slot takes the head's once it is listed.
proctype Recycler() { atomic { listed -> gone = true } }

proctype Judge() {
  timeout;
  assert(released == 1 && ended[0] && ended[1] && ended[2]);
  assert(done == 7 && !running && ends == 1 && listed)
}

init {
  atomic { run Ender(0); run Ender(1); run Ender(2); run Killer(); run Repairer(); run Recycler(); run Judge() }
}
