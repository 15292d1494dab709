// SPDX-License-Identifier: Apache-2.0
//
// The supervisor's sleep: it says until when it sleeps, looks once more at what is announced, and sleeps on the
// doorbell. A process that announces a timer, or gives a lease shorter than any before, reads `sleeping_until_ms`
// afterwards and rings if that is too late. Time does not pass here: numbers are due times, and a sleeper sleeps for
// ever.
//   supervisor  Attachment::supervise, Supervisor::tick, Timers::read_inbox, LeaseWatch::look
//   timer       Places::push_timer                lease  Holder::note_lease           watch  DeathWatch
//
// Proved: when nothing moves any more, the supervisor sleeps until the earliest time that was announced, or it is
// awake; also when one announcer is killed at any step, once its death has rung.
#ifndef TIMERS
#define TIMERS 2
#define LEASES 1
#define VICTIM 0  // 0 ..: a timer; 4 ..: a lease; 9: nobody
#endif
#define FAR 9     // kLongestSleepMs

byte doorbell, sleeping_until, shortest = FAR;
byte announced[3] = FAR;  // the ring of timers: each due time that has not been read
byte wakes_at;             // ghosts: when the sleeper wakes by itself, and the due times
byte due_of[3] = FAR;         // of what was announced, read or not
bool asleep, dead, over;

inline ring() {
  doorbell++;
  asleep = false
}

proctype Supervisor() {
  byte rung, heap = FAR, next, i, used;
  do
  ::
#ifndef MUTANT_BELL_READ_LATE
    rung = doorbell;
#endif
    sleeping_until = 0;
    i = 0;
    do  // read_inbox
    :: i < TIMERS -> d_step { if :: announced[i] < heap -> heap = announced[i] :: else fi; announced[i] = FAR; i++ }
    :: else -> break
    od;
    used = shortest;  // LeaseWatch::look
    next = (heap < used -> heap : used);
#ifndef MUTANT_SAYS_NOTHING
    sleeping_until = next;
#endif
#ifndef MUTANT_INBOX_NOT_LOOKED_AT_AGAIN
    if :: announced[0] != FAR || announced[1] != FAR || announced[2] != FAR -> goto again :: else fi;
#endif
#ifndef MUTANT_LEASE_NOT_LOOKED_AT_AGAIN
    if :: shortest != used -> goto again :: else fi;
#endif
#ifdef MUTANT_BELL_READ_LATE
    rung = doorbell;
#endif
    d_step { if :: doorbell == rung -> asleep = true; wakes_at = next :: else fi };  // futex_wait
  end_sleep:
    !asleep;
  again:
    atomic { rung = 0; next = 0; i = 0; used = 0 }
  od
}

proctype Timer(byte me, due) {
  {
    d_step { announced[me] = due; due_of[me] = due };
    if :: due < sleeping_until -> ring() :: else fi;
    if :: me == VICTIM -> over = true :: else fi
  } unless { (me == VICTIM && dead) }
}

proctype Lease(byte me, length) {
  bool done;
  {
    d_step { if :: length < shortest -> shortest = length; done = true :: else fi };
    if
    :: done && length < sleeping_until -> ring()
    :: else
    fi;
    if :: 4 + me == VICTIM -> over = true :: else fi
  } unless { (4 + me == VICTIM && dead) }
}

proctype Killer() {
  atomic { if :: VICTIM < 9 && !over -> dead = true :: true fi }
}
proctype Watch() {
end:
  dead;
#ifndef MUTANT_DEATH_RINGS_NOT
  ring()
#endif
}

proctype Judge() {
  byte i;
  timeout;
  d_step {
    assert(asleep);
    assert(wakes_at <= shortest);
    do
    :: i < 3 -> assert(wakes_at <= due_of[i]); i++
    :: else -> break
    od
  }
}


init {
  atomic {
    run Supervisor();
    if :: TIMERS > 0 -> run Timer(0, 2) :: else fi;
    if :: TIMERS > 1 -> run Timer(1, 5) :: else fi;
    if :: LEASES > 0 -> run Lease(0, 3) :: else fi;
    if :: LEASES > 1 -> run Lease(1, 1) :: else fi;
    run Killer();
    run Watch();
    run Judge()
  }
}
