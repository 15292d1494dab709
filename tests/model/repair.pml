// SPDX-License-Identifier: Apache-2.0
//
// One job, and the repair of a lane that died anywhere in its fetch, ack or requeue; the first repairer may be killed at
// any step too, and the second one repairs both. Meanwhile a living worker, as slow as may be, fetches and acks, and
// somebody ends the lease of the doomed one or of the slow one.
//   worker    Actor::fetch, take, ack, set_back, make_available, finish      expiry  Actor::end_leases, set_back
//   repairer  Actor::repair, undo_tallies, mend_slot, put_back, republish
// Lanes: 0 the doomed worker, 1 the living one, 2 and 3 the repairers, 4 whoever ends leases. Rings are one set of hints
// here, by tag; the record's other fields are left out.
//
// Proved: no two hold the job; a returned ack stands, and the job is completed once; it is never lost; when all is quiet
// every tally says what happened, wherever the doomed one and its first repairer died.
#ifndef SECOND
#define SECOND 0   // whether the first repairer may be killed
#define REQUEUE 1  // whether the doomed worker may give the job back instead of ending it
#define EXPIRY 1   // whether leases are ended
#endif
#define LANES 5
#define DOOMED 0
#define LIVING 1
#define SUPERVISOR 4
#define NOBODY 7

// Slot states and operations, as in the code.
#define AVAILABLE 0
#define CLAIMED 1
#define ACTIVE 2
#define SETTLING 3
#define MOVING 4
#define COMPLETED 5
#define NONE 0
#define FETCH 1
#define SETTLE 2
#define RETURN 3
#define MOVE 4

#define NO_TARGET 0
#define UNDO_TO(s) (1 + (s))           // data[3] below 16: the state before
#define WORD(s, o) (16 + (s) * 8 + (o))  // the word that was about to be stored; its tag is one more

byte state = AVAILABLE, owner = NOBODY, tag;
bool hint[32];                 // a hint for that tag has been pushed and not been passed
byte in[LANES], out[LANES], completed[LANES];
byte intent[LANES], data[LANES], target[LANES];  // one value before is enough: each operation moves one tally

bool dead[4], over[4];
byte believes;   // bit w: worker w thinks that it holds the job
byte acked;      // returned acks
byte running;

hidden byte i, s;

inline become(S, O) {  // one change of the control word
  if :: state == ACTIVE -> believes = 0 :: else fi;
  state = S;
  owner = O;
  tag = tag + 1
}
inline cas_word(S, O, T, NEW_S, NEW_O) {
  d_step {
    ok = (state == S && owner == O && tag == T);
    if :: ok -> become(NEW_S, NEW_O) :: else fi
  }
}
inline intend(OP, B) { d_step { data[me] = B; target[me] = NO_TARGET; intent[me] = OP } }

// Actor::make_available, from exclusively held.
inline make_available() {
  target[me] = WORD(AVAILABLE, NOBODY);
  d_step { assert(owner == me && state >= CLAIMED); become(AVAILABLE, NOBODY); t = tag };
  hint[t] = true;
  intent[me] = NONE
}

// Actor::set_back of a job held under (st, ow, t): counted in again, and available.
inline set_back(S, O) {
  intend(RETURN, in[me]);
  cas_word(S, O, t, SETTLING, me);
  if
  :: ok ->
    in[me] = in[me] + 1;
    make_available();
    ok = true
  :: else -> intent[me] = NONE
  fi
}

proctype Worker(byte me) {
  byte t;
  bool ok;
  {
    do
    :: d_step { t = tag; ok = (state == AVAILABLE && hint[tag]) };  // Actor::look
      if
      :: ok ->
#ifndef MUTANT_TALLY_BEFORE_INTENT
        intend(FETCH, out[me]);
#endif
        cas_word(AVAILABLE, NOBODY, t, CLAIMED, me);
        if
        :: ok ->
          hint[t] = false;
          out[me] = out[me] + 1;
#ifdef MUTANT_TALLY_BEFORE_INTENT
          intend(FETCH, out[me] - 1);
#endif
          d_step {  // take: a store
#ifndef MUTANT_REPAIR_WITHOUT_PROOF
            assert(state == CLAIMED && owner == me);
#endif
            state = ACTIVE;
            owner = me;
            tag = t + 2;
            t = tag;
            assert(believes == 0);
            believes = 1 << me
          };
          intent[me] = NONE;
          if
          :: intend(SETTLE, completed[me]);  // ack
            cas_word(ACTIVE, me, t, SETTLING, me);
            if
            :: ok ->
              completed[me] = completed[me] + 1;
              target[me] = WORD(COMPLETED, NOBODY);
              d_step { assert(owner == me && state == SETTLING); become(COMPLETED, NOBODY) };
              d_step { acked++; intent[me] = NONE };
              break
            :: else -> intent[me] = NONE  // lost: the lease had ended
            fi
          :: me == DOOMED && REQUEUE ->
            set_back(ACTIVE, me);
            if :: ok -> break :: else fi
          fi
        :: else -> intent[me] = NONE
        fi
      :: else ->
        if
        :: state == COMPLETED -> break
        :: me == DOOMED -> break
        :: me != DOOMED && ((state == AVAILABLE && hint[tag]) || state == COMPLETED) -> skip
        fi
      fi;
      atomic { t = 0; ok = false }
    od;
    atomic { if :: me == DOOMED -> over[me] = true :: else fi; running-- }
  } unless { atomic { (me == DOOMED && dead[DOOMED]) -> t = 0; ok = 0; if :: believes == (1 << me) -> believes = 0 :: else fi } }
}

// Ends one lease, of whoever is active; the deadline is the cas on it, which is left out: it has passed.
proctype Expiry(byte me) {
  byte t, o;
  bool ok;
end:
  d_step { state == ACTIVE -> t = tag; o = owner; running++ };
  intend(RETURN, in[me]);
  d_step {
    ok = (state == ACTIVE && owner == o && tag == t);
    if :: ok -> become(SETTLING, me) :: else fi
  };
  if
  :: ok -> in[me] = in[me] + 1; make_available()
  :: else -> intent[me] = NONE
  fi;
  running--
}

proctype Killer(byte victim) {
end:
  atomic {
    (victim == DOOMED || dead[DOOMED]);
    if :: !over[victim] -> dead[victim] = true :: true fi
  }
}

// Actor::undo_tallies: absolute values, so it may be done twice.
inline undo_tallies() {
  d_step {
    if
    :: op == FETCH -> out[lost] = data[lost]
    :: op == SETTLE -> completed[lost] = data[lost]
    :: op == RETURN -> in[lost] = data[lost]
    :: else
    fi
  }
}

// Actor::mend_slot, whatever names the lane.
inline mend_slot() {
  d_step { st = state; t = tag; ok = (owner == lost) };
  if
  :: ok && (st == CLAIMED || st == MOVING) ->  // put_back
    intend(MOVE, 0);
    target[me] = UNDO_TO(AVAILABLE);
    cas_word(st, lost, t, MOVING, me);
    if :: ok -> make_available() :: else -> intent[me] = NONE fi
  :: ok && (st == ACTIVE || st == SETTLING) -> set_back(st, lost)
  :: else
  fi
}

inline repair() {
  op = intent[lost];
  if
  :: op != NONE ->
    d_step { st = state; t = tag; ok = (owner == lost && st != ACTIVE) };  // in its hands
    aim = target[lost];
#ifdef MUTANT_INTENT_CLEARED_FIRST
    intent[lost] = NONE;
#endif
    if
#ifndef MUTANT_NEVER_FINISHED
    :: ok && aim >= 16 -> cas_word(st, lost, t, (aim - 16) / 8, (aim - 16) & 7)  // nothing was left but this store
#endif
    :: ok && (aim < 16) ->
      undo_tallies();
      mend_slot()
    :: else
    fi;
#ifndef MUTANT_NOT_REPUBLISHED
    if
    :: aim >= 16 -> d_step { if :: state == AVAILABLE -> hint[tag] = true :: else fi }
    :: else
    fi;
#endif
    intent[lost] = NONE
  :: else
  fi;
  mend_slot();  // everything else that names it
  atomic { op = 0; st = 0; t = 0; aim = 0; ok = false }
}

proctype Repairer(byte me) {
  byte lost, op, st, t, aim, n;
  bool ok;
end:
#ifndef MUTANT_REPAIR_WITHOUT_PROOF
  (me == 2 && dead[DOOMED]) || (me == 3 && dead[2]);  // the proof of death
#else
  me == 2 || (me == 3 && dead[2]);
#endif
  {
    n = (me == 2 -> 1 : 2);
    if :: lost = DOOMED :: me == 3 -> lost = 2 fi;
    do
    :: n > 0 -> repair(); lost = 2 - lost; n--
    :: else -> break
    od;
    atomic { over[me] = true; running-- }
  } unless { atomic { (me == 2 && dead[2]) -> lost = 0; op = 0; n = 0; st = 0; t = 0; aim = 0; ok = 0 } }
}

proctype Judge() {
  running == 0;
  d_step {
    assert(state == COMPLETED && owner == NOBODY && believes == 0);
    i = 0;
    do :: i < LANES -> s = s + completed[i]; assert(intent[i] == NONE); i++ :: else -> break od;
    assert(s == 1 && acked <= 1);
    s = 1;  // it was put in once, and each time it came back
    i = 0;
    do :: i < LANES -> s = s + in[i] - out[i]; i++ :: else -> break od;
    assert(s == 0);
    i = 0
  }
}

init {
  atomic {
    hint[0] = true;
    running = 2;  // the living worker; the doomed one or the last of its repairers
    run Worker(DOOMED);
    run Worker(LIVING);
    run Killer(DOOMED);
    run Repairer(2);
    if :: SECOND -> run Killer(2); run Repairer(3) :: else fi;
    if :: EXPIRY -> run Expiry(SUPERVISOR) :: else fi;
    run Judge()
  }
}
