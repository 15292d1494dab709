// SPDX-License-Identifier: Apache-2.0
//
// Producers that wait for room in a full queue of bound 1: places in line, who is called, and who is let in. A waiter
// sleeps for ever here but when it rests: until the clock, at any later step, says that its rest is over. Where a store may
// be seen late, the code looks again ten times in a second, and that is not in it.
//   waiter   RoomWait::look, wait; WaitingLine::await_room, may_pass, rest_in_line, leave_room; Room::admit
//   remover  StraightFetch::take, room_made, call_next, may_rest       passer   Room::admit without patience
//   repair   Repairer::repair: drop_tickets, call_next
//
// Proved: nobody is let in while one who came before his call still waits; the bound is kept; and when nothing moves any
// more, nobody who is first in line sleeps beside room, also when one is killed at any step, once he has been repaired.
#ifndef WAITERS
#define WAITERS 2
#define REMOVALS 2
#define PASSER 0
#define RESTS 0
#define VICTIM 9  // 0, 1: a waiter; 3: the remover; 9: nobody
#endif
#define NONE 7
#define REMOVER 3

byte reserved = 1, out;
byte line[4] = NONE, tail;
bool live[4], called[4], asleep[4];
bool rests[4], dozes[4];  // its rest is not over; it sleeps no longer than that
byte park[4];
bool awaited;
byte version;
bool dead, over;

inline first() {  // one step: the ring's own order is the model `levels`
  d_step {
    f = NONE;
    i = 0;
    do
    :: i < tail && f == NONE -> if :: live[line[i]] -> f = line[i] :: else fi; i++
    :: else -> break
    od;
    i = 0
  }
}

#define ANYWAY 1
#define UNLESS_CALLED 2
#define UNLESS_IT_RESTS 3
inline call_next(how) {
  d_step { a = awaited; v = version };
  if
  :: a ->
    first();
    if
    :: f == NONE ->
#ifdef MUTANT_CLEARED_WHATEVER_CAME
      awaited = false
#else
      d_step { if :: version == v -> awaited = false :: else fi }
#endif
    :: else ->
      if
      :: how == UNLESS_IT_RESTS && rests[f]
      :: true ->
        d_step { a = called[f]; called[f] = true };
        if :: !a || how == ANYWAY -> d_step { park[f]++; asleep[f] = false } :: else fi
      fi
    fi
  :: else
  fi;
  d_step { f = NONE; a = false; v = 0 }
}

/// Who is live in line now.
inline note_line() {
  d_step { before_me = (live[0] -> 1 : 0) | (live[1] -> 2 : 0) | (live[2] -> 4 : 0) }
}
inline admitted() {
  assert(reserved - out <= 1);
  assert((before_me & ((live[0] -> 1 : 0) | (live[1] -> 2 : 0) | (live[2] -> 4 : 0))) == 0)
}

proctype Waiter(byte me) {
  byte f = NONE, i, v, r, before_me, slept_at;
  bool a, in_line, done, was_called = true, soon;
  {
    note_line();
    do
    ::
      slept_at = park[me];
#if defined(MUTANT_REST_OUTLIVED) || defined(MUTANT_SLEEPS_LONG_AFTER_A_REST_CUT_SHORT)
      soon = RESTS && was_called;
#else
      soon = RESTS && (was_called || rests[me]);
#endif
#ifndef MUTANT_CALLED_CLEARED_LATE
      called[me] = false;
#endif
      r = reserved;
      if
      :: r - out < 1 ->
        first();
        if
        :: f == (in_line -> me : NONE) ->
          d_step { if :: reserved == r -> reserved++; done = true; live[me] = false; admitted(); live[me] = in_line :: else fi };
          if :: done -> break :: else -> goto again fi
        :: else
        fi
      :: else
      fi;
#ifdef MUTANT_CALLED_CLEARED_LATE
      called[me] = false;
#endif
      if
      :: !in_line ->
        d_step { line[tail] = me; tail++; live[me] = true; in_line = true };
        d_step { awaited = true; version++ };
#ifdef MUTANT_SLEEPS_WITHOUT_A_LOOK
        slept_at = park[me];
        d_step { if :: park[me] == slept_at -> asleep[me] = true :: else fi };
end_asleep_at_once:
        !asleep[me]
#endif
      :: else ->
        if :: soon -> rests[me] = true :: else fi;
        d_step { if :: park[me] == slept_at -> asleep[me] = true; dozes[me] = soon :: else fi };  // futex_wait
end_asleep:
#ifdef MUTANT_SLEEPS_LONG_AFTER_A_REST_CUT_SHORT
        !asleep[me] -> d_step { dozes[me] = false; was_called = false }
#else
        !asleep[me] -> d_step { dozes[me] = false; was_called = (park[me] != slept_at) }
#endif
      fi;
again:
      atomic { f = NONE; r = 0 }
    od;
    live[me] = false;
#ifndef MUTANT_LEAVES_IN_SILENCE
    call_next(UNLESS_CALLED);
#endif
    if :: me == VICTIM -> over = true :: else fi
  } unless { (me == VICTIM && dead) }
}

proctype Remover() {
  byte f = NONE, i, v, n;
  bool a;
  {
    do
    :: n < REMOVALS ->
end_no_job:
      reserved - out > 0;
      out++;
      if :: awaited -> call_next(UNLESS_IT_RESTS) :: else fi;
      n++
    :: else -> break
    od;
    if :: REMOVER == VICTIM -> over = true :: else fi
  } unless { (REMOVER == VICTIM && dead) }
}

/// Does not wait: let in or refused.
proctype Passer() {
  byte f = NONE, i, r, before_me;
  note_line();
  r = reserved;
  if
  :: r - out < 1 ->
    first();
    if
#ifdef MUTANT_PASSES
    :: true ->
#else
    :: f == NONE ->
#endif
      d_step { if :: reserved == r -> reserved++; admitted() :: else fi }
#ifndef MUTANT_PASSES
    :: else
#endif
    fi
  :: else
  fi
}

proctype Killer() {
  atomic { if :: VICTIM < 9 && !over -> dead = true :: true fi }
}
proctype Repairer() {
  byte f = NONE, i, v;
  bool a;
end:
  dead;
  if :: VICTIM < REMOVER -> live[VICTIM] = false :: else fi;
#ifdef MUTANT_REPAIR_MINDS_THE_CALL
  call_next(UNLESS_CALLED)
#else
#ifndef MUTANT_REPAIR_CALLS_NOBODY
  call_next(ANYWAY)
#endif
#endif
}

/// A rest is over some time after it began; who sleeps no longer than that wakes then or later.
proctype Clock() {
end:
  do
#ifdef MUTANT_REST_OUTLIVED
  :: asleep[0] && dozes[0] -> asleep[0] = false
#else
  :: rests[0] -> rests[0] = false
  :: asleep[0] && dozes[0] && !rests[0] -> asleep[0] = false
#endif
  :: rests[1] -> rests[1] = false
  :: asleep[1] && dozes[1] && !rests[1] -> asleep[1] = false
  od
}

proctype Judge() {
  byte f = NONE, i;
  timeout;
  first();
  d_step { assert(f == NONE || !asleep[f] || reserved - out >= 1) }
}

init {
  atomic {
    run Waiter(0);
    if :: WAITERS > 1 -> run Waiter(1) :: else fi;
    if :: PASSER > 0 -> run Passer() :: else fi;
    run Remover();
    run Killer();
    run Repairer();
    run Clock();
    run Judge()
  }
}
