// SPDX-License-Identifier: Apache-2.0
//
// A unique key in the index of keys. Inserters bring jobs of one key, each in a slot of its own, which it fills, enters
// and publishes; a worker ends jobs; a slot whose job has ended is used again.
//   inserter  KeyIndex::insert, place, take_away, pass_no_more, remove; KeyLook, UniqueKeys::claim, seize, end;
//             SlotPool::recycle, free; the commit of Actor::enqueue_batch_in_order
//   repairer  Actor::repair, finish_batch, let_go
// The window has two lines: one cell, and those beyond it, which the count of the first line tells. Inserters that
// replace take the job that is in their way into their hands, commit, and end it.
//
// Proved: at most one job of the key lives at any time, and a job that was there lives on until another one has its
// place; when all is quiet, each entry leads to a slot that carries the key, each job that lives has its entry, and the
// count tells what lies beyond, or more after a death. Also when an inserter dies at any step, and its repairer.
#ifndef REPLACE
#define REPLACE 0    // 1: the inserters replace what is in their way, else it keeps them out
#define OLD 0        // 1: a job of the key lives in the last slot
#define NEIGHBOUR 1  // 1: the first line has an entry of another key, which goes at some time
#define TRIES 1      // jobs that each inserter brings
#define ENDS 0       // jobs that the worker ends
#define VICTIM 9     // 0: the first inserter may die; 9: none
#define REPAIRERS 1  // 2: the first may die too
#define COURTESIES 1 // how often an inserter steps back; 9: without end
#endif
#define FIRST 1  // cells of the first line
#define CELLS 3
#define SLOTS 3
#define NONE 15

#define STEPS_BACK (COURTESIES == 9 || round < COURTESIES)
#define AGAIN if :: COURTESIES != 9 && round < COURTESIES -> round++ :: else fi

// A cell: 0 empty, 1 + slot tentative, 9 + slot confirmed, 31 of another key.
#define TENTATIVE(slot) (1 + (slot))
#define CONFIRMED(slot) (9 + (slot))
#define OF_OTHER 31
#define IS_TENTATIVE(entry) ((entry) < 9)
#define SLOT_OF(entry) (((entry) - 1) & 7)

mtype = { vacant, filling, live, held, ended };
byte cell[CELLS];
byte beyond;  // the first line's count
mtype slot[SLOTS] = vacant;
byte owner[SLOTS] = NONE;
bool replaced[SLOTS];
bool committed[2];
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
#ifdef MUTANT_COUNTED_DOWN_BY_LOSER
  if :: at >= FIRST && beyond > 0 -> beyond-- :: else fi
#else
  if :: was_taken && at >= FIRST -> beyond-- :: else fi
#endif
#endif
}

// Takes the entries of the slot, whatever they are.
inline remove(s) {
  j = 0;
  do
  :: j == FIRST && beyond == 0 -> break
  :: j < CELLS && (j != FIRST || beyond > 0) ->
     atomic { e = cell[j]; if :: e != TENTATIVE(s) && e != CONFIRMED(s) -> e = 0; j++ :: else fi };
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
  :: atomic { own < FIRST && cell[own] == 0 -> cell[own] = TENTATIVE(me); break }
  :: own == FIRST ->
#ifndef MUTANT_COUNTED_LATE
     beyond++;
#endif
     do
     :: atomic { own < CELLS && cell[own] != 0 -> own++ }
     :: atomic { own < CELLS && cell[own] == 0 -> cell[own] = TENTATIVE(me); break }
     od;
#ifdef MUTANT_COUNTED_LATE
     beyond++;
#endif
     break
  od
}

// What the other entries of the key are to us.
inline look() {
  lost = false; behind = false; waits = false; rival = NONE; i = 0;
  do
  :: i == FIRST && beyond == 0 -> break
  :: i == CELLS || lost || behind -> break
  :: i < CELLS && (i != FIRST || beyond > 0) && !lost && !behind ->
     atomic { f = cell[i]; if :: i == own || f == 0 || f == OF_OTHER || SLOT_OF(f) == me -> f = 0 :: else fi };
     if
     :: f != 0 ->
        keeps_out = false;
        atomic {
          if
          :: slot[SLOT_OF(f)] == live && REPLACE -> rival = SLOT_OF(f)
          :: slot[SLOT_OF(f)] == live && !REPLACE -> keeps_out = true
#ifndef MUTANT_FILLING_PASSED_OVER
          :: slot[SLOT_OF(f)] == filling -> keeps_out = true; waits = true
#endif
#ifndef MUTANT_HELD_PASSED_OVER
          :: slot[SLOT_OF(f)] == held -> keeps_out = true; waits = true
#endif
          :: else
          fi
        };
        if
        :: keeps_out && !IS_TENTATIVE(f) -> lost = true
#ifdef MUTANT_TENTATIVE_PASSED_OVER
        :: keeps_out && IS_TENTATIVE(f) -> skip
#else
#ifndef MUTANT_NO_COURTESY
        :: keeps_out && IS_TENTATIVE(f) && i < own && STEPS_BACK -> behind = true
        :: keeps_out && IS_TENTATIVE(f) && !(i < own && STEPS_BACK) ->
#else
        :: keeps_out && IS_TENTATIVE(f) ->
#endif
           take_away(i, f, done);
           if :: !done && cell[i] == CONFIRMED(SLOT_OF(f)) -> lost = true :: else fi
#endif
        :: !keeps_out
        fi
     :: else
     fi;
     atomic { f = 0; i++; keeps_out = false; done = false }
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
    own = 0; i = 0; j = 0; e = 0; f = 0; rival = 0; round = 0;
    lost = false; behind = false; waits = false; keeps_out = false; done = false
  }
}

proctype Inserter(byte me) {
  byte own, i, j, e, f, n, rival, round;
  bool lost, behind, waits, keeps_out, done;
  {
    do
    :: n == TRIES || slot[me] == live || slot[me] == held -> break
    :: n < TRIES && (slot[me] == vacant || slot[me] == ended) ->
       // a slot, which may have had a job of the key before
       atomic { if :: slot[me] == ended -> done = true :: else fi; slot[me] = filling; owner[me] = me };
       if :: done -> done = false; remove(me) :: else fi;
       round = 0;
claim: // 1. our entry
#ifdef MUTANT_LOOK_FIRST
       own = NONE;
       look();
       if :: !lost && !behind -> place() :: else fi;
#else
       place();
       // 2. the others with the same key
       look();
#endif
       if
       :: lost || behind ->
#ifndef MUTANT_LOOK_FIRST
          take_away(own, TENTATIVE(me), done);
#endif
          done = false;
          AGAIN;
          if :: lost && !waits -> goto refused :: else fi;
progress: goto claim
       :: else
       fi;
       // 3. ours, unless another threw it out
#ifdef MUTANT_CONFIRMED_BY_STORE
       cell[own] = CONFIRMED(me);
#else
       d_step { done = cell[own] == TENTATIVE(me); if :: done -> cell[own] = CONFIRMED(me) :: else fi };
       if :: !done -> AGAIN; goto claim :: else fi;
       done = false;
#endif
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
         if :: !IS_TENTATIVE(cell[n]) && slot[SLOT_OF(cell[n])] == live -> entries++ :: else fi
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
    if :: OLD -> slot[2] = live; cell[0] = CONFIRMED(2) :: else fi;
    run Inserter(0); run Inserter(1);
    if :: ENDS > 0 -> run Worker() :: else fi;
    if :: NEIGHBOUR -> run Neighbour() :: else fi;
    if :: VICTIM == 0 -> run Killer(); run Repairer() :: else fi;
    if :: REPAIRERS > 1 -> run Again() :: else fi;
    run Judge()
  }
}
