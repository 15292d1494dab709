// SPDX-License-Identifier: Apache-2.0
//
// A unique key in the index of keys. Inserters bring jobs of one key, each in a slot of its own, which it fills, enters
// and publishes; a worker ends jobs; a slot whose job has ended is used again.
//   inserter  KeyIndex::insert, insert_alone, place, take_away, pass_no_more, remove; KeyLook;
//             UniqueKeys::claim_key, claim_key_among, seize_rivals, end_rival; Slots::recycle, free;
//             the commit of Actor::Batch and Actor::UniqueBatch, replace_straight
//   repairer  Repairer::repair, finish_batch, let_go
// The window has two lines: one cell, and those beyond it, which the count of the first line tells. Inserters that
// replace take the job that is in their way into their hands, commit, and end it.
//
// Two that come at once see each other, or the later one sees the earlier alone. The one in the lower cell waits for the
// other, which may have the key already; the one in the higher cell takes its entry away, and comes back when none comes.
//
// Proved: at most one job of the key lives at any time, and a job that was there lives on until another one has its
// place; no process waits for ever, and none goes round for ever; when all is quiet, each entry leads to a slot that carries the key, each job that lives has its entry, and the
// count tells what lies beyond, or more after a death. Also when an inserter dies at any step, and its repairer.
#ifndef REPLACE
#define REPLACE 0    // 1: the inserters replace what is in their way, else it keeps them out
#define OLD 0        // 1: a job of the key lives in the last slot
#define NEIGHBOUR 1  // 1: the first line has an entry of another key, which goes at some time
#define TRIES 1      // jobs that each inserter brings
#define ENDS 0       // jobs that the worker ends
#define VICTIM 9     // 0: the first inserter may die; 9: none
#define REPAIRERS 1  // 2: the first may die too
#define INSERTERS 2  // 3: without OLD
#endif
#define FIRST 1  // cells of the first line
#define CELLS 3
#define SLOTS 3
#define NONE 15

// A cell: 0 empty, 1 + slot, 31 of another key.
#define ENTRY(slot) (1 + (slot))
#define OF_OTHER 31
#define SLOT_OF(entry) ((entry) - 1)

mtype = { vacant, filling, live, held, ended };
byte cell[CELLS];
byte beyond;  // the first line's count
mtype slot[SLOTS] = vacant;
byte owner[SLOTS] = NONE;
bool replaced[SLOTS];
bool committed[3];
bool dead, dead_too, over;
byte brought, gone;  // jobs that were published; that have ended

// What is in uncommitted hands lives, and so does what a commit has yet to publish.
#define LIVES(s) \
  (slot[s] == live || (slot[s] == held && !replaced[s] && !committed[owner[s]]) || \
   (slot[s] == filling && committed[owner[s]]))

inline check_one() {
  assert((LIVES(0) -> 1 : 0) + (LIVES(1) -> 1 : 0) + (LIVES(2) -> 1 : 0) <= 1)
}

// Empties the cell if it still holds that entry.
inline take_away(at, entry, was_taken) {
#ifdef MUTANT_COUNTED_DOWN_FIRST
  if :: at >= FIRST -> beyond-- :: else fi;
  d_step { was_taken = cell[at] == entry; if :: was_taken -> cell[at] = 0 :: else fi };
  if :: !was_taken && at >= FIRST -> beyond++ :: else fi
#else
  d_step { was_taken = cell[at] == entry; if :: was_taken -> cell[at] = 0 :: else fi };
  if :: was_taken && at >= FIRST -> beyond-- :: else fi
#endif
}

// Takes the entries of the slot, whatever they are.
inline remove(s) {
  j = 0;
  do
  :: j == FIRST && beyond == 0 -> break
  :: j < CELLS && (j != FIRST || beyond > 0) ->
     atomic { e = cell[j]; if :: e != ENTRY(s) -> e = 0; j++ :: else fi };
     if :: e != 0 -> take_away(j, e, done); e = 0; j++ :: else fi
  :: j == CELLS -> break
  od;
  j = 0; e = 0; done = false
}

// The first empty cell, into `own`.
inline place() {
  own = 0;
  do
  :: atomic { own < FIRST && cell[own] != 0 -> own++ }
  :: atomic { own < FIRST && cell[own] == 0 -> cell[own] = ENTRY(me); break }
  :: own == FIRST ->
#ifndef MUTANT_COUNTED_LATE
     beyond++;
#endif
     do
     :: atomic { own < CELLS && cell[own] != 0 -> own++ }
     :: atomic { own < CELLS && cell[own] == 0 -> cell[own] = ENTRY(me); break }
     od;
#ifdef MUTANT_COUNTED_LATE
     beyond++;
#endif
     break
  od
}

#define COMES(at) (cell[at] != 0 && cell[at] != OF_OTHER && (slot[SLOT_OF(cell[at])] == filling || \
                                                            slot[SLOT_OF(cell[at])] == held))
#define NONE_COMES (!COMES(0) && !COMES(1) && !COMES(2))

// What the other entries of the key are to us. `ahead`: another comes in a higher cell, 1 + its place.
inline look() {
  lost = false; behind = false; waits = false; rival = NONE; ahead = 0; i = 0;
  do
  :: i == FIRST && beyond == 0 -> break
  :: i == CELLS || lost || behind -> break
  :: i < CELLS && (i != FIRST || beyond > 0) && !lost && !behind ->
     atomic { f = cell[i]; if :: i == own || f == 0 || f == OF_OTHER || SLOT_OF(f) == me -> f = 0 :: else fi };
     if
     :: f != 0 ->
        atomic {
          if
          :: slot[SLOT_OF(f)] == live && REPLACE -> rival = SLOT_OF(f)
          :: slot[SLOT_OF(f)] == live && !REPLACE -> lost = true
#ifndef MUTANT_FILLING_PASSED_OVER
          :: slot[SLOT_OF(f)] == filling ->
#ifdef MUTANT_BOTH_STEP_BACK
             behind = true
#elif defined(MUTANT_NONE_STEPS_BACK)
             ahead = 1 + i; g = f
#else
             if
             :: i < own -> behind = true
             :: else ->
#ifndef MUTANT_AHEAD_PASSED_OVER
                ahead = 1 + i; g = f
#endif
             fi
#endif
#endif
#ifndef MUTANT_HELD_PASSED_OVER
          :: slot[SLOT_OF(f)] == held -> lost = true; waits = true
#endif
          :: else
          fi
        }
     :: else
     fi;
     atomic { f = 0; i++ }
  od;
  i = 0
}

inline publish(s) {
  atomic { slot[s] = live; owner[s] = NONE; brought++; check_one() }
}

inline end_rival() {
  atomic {
    if
    :: replaced[rival] -> slot[rival] = ended; replaced[rival] = false; gone++
    :: else -> slot[rival] = live
    fi;
    owner[rival] = NONE
  }
}

// What a process knows matters no more.
inline forget() {
  d_step {
    own = 0; i = 0; j = 0; e = 0; f = 0; g = 0; rival = 0; ahead = 0;
    lost = false; behind = false; waits = false; done = false
  }
}

proctype Inserter(byte me) {
  byte own, i, j, e, f, g, n, rival, ahead;
  bool lost, behind, waits, done;
  {
    do
    :: n == TRIES || slot[me] == live || slot[me] == held -> break
    :: n < TRIES && (slot[me] == vacant || slot[me] == ended) ->
       // a slot, which may have had a job of the key before
       atomic { if :: slot[me] == ended -> done = true :: else fi; slot[me] = filling; owner[me] = me };
       if :: done -> done = false; remove(me) :: else fi;
claim: // 1. our entry
#ifdef MUTANT_LOOK_FIRST
       own = NONE;
       look();
       if :: !lost && !behind && !ahead -> place() :: else fi;
#else
       place();
again: // 2. the others with the same key
       look();
#endif
       if
       :: lost || behind ->
#ifndef MUTANT_LOOK_FIRST
          take_away(own, ENTRY(me), done);
#endif
          done = false;
          if :: lost && !waits -> goto refused :: else fi;
          NONE_COMES;
          goto claim
#ifndef MUTANT_LOOK_FIRST
       :: !lost && !behind && ahead > 0 ->
          cell[ahead - 1] != g || slot[SLOT_OF(g)] != filling;
          goto again
#endif
       :: else
       fi;
       // 3. the key is ours
       if
       :: rival != NONE ->
#ifdef MUTANT_SEIZED_BY_STORE
          atomic { done = true; slot[rival] = held; owner[rival] = me };
#else
          atomic { done = slot[rival] == live; if :: done -> slot[rival] = held; owner[rival] = me :: else fi };
#endif
          if :: !done -> rival = NONE; goto give_up :: else fi;
          done = false;
#ifdef MUTANT_ENDED_BEFORE_COMMIT
          replaced[rival] = true; end_rival();
#endif
#ifdef MUTANT_PUBLISHED_BEFORE_COMMIT
          publish(me);
#endif
          atomic { committed[me] = true; check_one() };
#ifndef MUTANT_PUBLISHED_BEFORE_COMMIT
          publish(me);
#endif
#ifndef MUTANT_ENDED_BEFORE_COMMIT
          replaced[rival] = true;
#endif
          committed[me] = false;
#ifndef MUTANT_ENDED_BEFORE_COMMIT
          end_rival();
#endif
          rival = NONE
       :: else -> publish(me)
       fi;
       n++;
       goto next;
give_up: // the job that it would have replaced has moved: look again
       remove(me);
       atomic { slot[me] = vacant; owner[me] = NONE };
       goto next;
refused: atomic { slot[me] = vacant; owner[me] = NONE };
       n++;
next:  forget()
    od;
    atomic { if :: me == VICTIM -> over = true :: else fi; forget(); n = 0 }
  } unless { atomic { me == VICTIM && dead -> forget(); n = 0 } }
}

proctype Worker() {
  byte n, s;
  do
  :: n == ENDS -> break
  :: atomic { n < ENDS && slot[0] == live -> slot[0] = ended; gone++; n++ }
  :: atomic { n < ENDS && slot[1] == live -> slot[1] = ended; gone++; n++ }
  :: atomic { n < ENDS && slot[2] == live -> slot[2] = ended; gone++; n++ }
  :: n < ENDS -> break
  od
}

proctype Neighbour() {
  atomic { NEIGHBOUR -> cell[0] = 0 }
}

proctype Killer() {
  atomic { if :: !over -> dead = true :: over fi };
  atomic { if :: REPAIRERS > 1 && dead -> dead_too = true :: true fi }
}

// In the name of the dead lane; from the beginning again when the repairer dies.
inline repair() {
  if
  :: committed[0] ->
#ifdef MUTANT_COMMIT_CLEARED_FIRST
     committed[0] = false;
#endif
     if :: slot[0] == filling && owner[0] == 0 -> publish(0) :: else fi;
#ifndef MUTANT_GIVEN_BACK_AFTER_COMMIT
     if :: slot[1] == held && owner[1] == 0 -> replaced[1] = true :: else fi;
     if :: slot[2] == held && owner[2] == 0 -> replaced[2] = true :: else fi;
#endif
     committed[0] = false
  :: else
  fi;
  if
  :: slot[0] == filling && owner[0] == 0 ->
#ifdef MUTANT_FREED_FIRST
     atomic { slot[0] = vacant; owner[0] = NONE };
     remove(0)
#else
#ifndef MUTANT_ENTRY_LEFT
     remove(0);
#endif
     atomic { slot[0] = vacant; owner[0] = NONE }
#endif
  :: else
  fi;
  rival = 1;
  if :: slot[1] == held && owner[1] == 0 -> end_rival() :: else fi;
  rival = 2;
  if :: slot[2] == held && owner[2] == 0 -> end_rival() :: else fi;
  rival = 0
}
proctype Repairer() {
  byte j, e, rival;
  bool done;
end:
  dead;
  { repair() } unless { atomic { dead_too -> j = 0; e = 0; rival = 0; done = false } }
}
proctype Again() {
  byte j, e, rival;
  bool done;
end:
  dead_too;
  repair()
}

proctype Judge() {
  byte s, n, there, entries, far;
  timeout;
  d_step {
    do
    :: n < CELLS ->
      if
      :: cell[n] != 0 && cell[n] != OF_OTHER ->
         assert(slot[SLOT_OF(cell[n])] != vacant);  // no entry is left behind
         if :: slot[SLOT_OF(cell[n])] == live -> entries++ :: else fi
      :: else
      fi;
      if :: cell[n] != 0 && n >= FIRST -> far++ :: else fi;
      n++
    :: else -> break
    od;
    do
    :: s < SLOTS ->
      assert(slot[s] != filling && slot[s] != held);
      if :: slot[s] == live -> there++ :: else fi;
      s++
    :: else -> break
    od;
    assert(entries == there);  // a job that lives is in the index
    assert(there == OLD + brought - gone);
    // One that was there is not lost, and of those that come one gets in.
    assert(ENDS > 0 || (dead && OLD == 0) || there == 1);
    assert(beyond == far || (dead && beyond > far))
  }
}

init {
  atomic {
    if :: NEIGHBOUR -> cell[0] = OF_OTHER :: else fi;
    if :: OLD -> slot[2] = live; cell[0] = ENTRY(2) :: else fi;
    run Inserter(0); run Inserter(1);
    if :: INSERTERS == 3 -> run Inserter(2) :: else fi;
    if :: ENDS > 0 -> run Worker() :: else fi;
    if :: NEIGHBOUR -> run Neighbour() :: else fi;
    if :: VICTIM == 0 -> run Killer(); run Repairer() :: else fi;
    if :: REPAIRERS > 1 -> run Again() :: else fi;
    run Judge()
  }
}
