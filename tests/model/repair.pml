// SPDX-License-Identifier: Apache-2.0
//
// One job, and the repair of a lane that died anywhere in its fetch, ack or requeue. The repairer acts as that lane;
// it may be killed at any step too, and the next one begins again. Meanwhile a living worker, as slow as may be,
// fetches and acks, and a process ends the lease of the doomed one or of the slow one.
//   worker    Fetcher::fetch, take, ack, set_back; Mover::land, finish      expiry  Changer::end_leases, set_back
//   repairer  Repairer::repair, undo_tallies, end_operation, let_go, republish
// Rings are one set of hints here, by tag; the record's other fields are left out.
//
// Proved: no two hold the job; a returned ack stands, and the job is completed once; it is never lost; when all is
// quiet every tally says what happened, wherever the doomed one and its first repairer died.
#ifndef SECOND
#define SECOND 0   // whether the first repairer may be killed
#define REQUEUE 1  // whether the doomed worker may give the job back instead of ending it
#define EXPIRY 1   // whether leases are ended
#endif
#define LANES 3
#define DOOMED 0      // and whoever repairs it
#define LIVING 1
#define SUPERVISOR 2
#define NOBODY 7

// Slot states and operations, as in the code.
#define AVAILABLE 0
#define CLAIMED 1
#define ACTIVE 2
#define SETTLING 3
#define COMPLETED 4
#define NONE 0
#define FETCH 1
#define SETTLE 2
#define RETURN 3
#define MOVE 4

#define NO_TARGET 0
#define WORD(s, o) (16 + (s) * 8 + (o))  // data[3]: the word that was about to be stored; its tag is one more

byte state = AVAILABLE, owner = NOBODY, tag;
bool hint[32];                 // a hint for that tag has been pushed and not been passed
byte in[LANES], out[LANES], completed[LANES];
byte intent[LANES], data[LANES], target[LANES];  // one value before is enough: each operation moves one tally

bool dead[2], over[2];  // 0: the doomed worker, 1: its first repairer
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

// Mover::land in a line, from exclusively held.
inline make_available() {
  target[me] = WORD(AVAILABLE, NOBODY);
  d_step { assert(owner == me && state >= CLAIMED); become(AVAILABLE, NOBODY); t = tag };
  hint[t] = true;
  intent[me] = NONE
}

// Changer::set_back of a job held under (st, ow, t): counted in again, and available.
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
        :: me != DOOMED && state == AVAILABLE && hint[tag] -> skip
        fi
      fi;
      atomic { t = 0; ok = false }
    od;
    atomic { if :: me == DOOMED -> over[me] = true :: else fi; running-- }
  } unless {
    atomic { (me == DOOMED && dead[DOOMED]) -> t = 0; ok = 0; if :: believes == (1 << me) -> believes = 0 :: else fi }
  }
}

// Ends one lease, of a process that is active; the deadline is the cas on it, which is left out: it has passed.
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
#ifndef MUTANT_REPAIR_WITHOUT_PROOF  // there no process dies: the owner is only slow
    if :: !over[victim] -> dead[victim] = true :: true fi
#endif
  }
}

// What the lane was in the middle of is ended under the intent that says so; then whatever else it holds goes.
proctype Repairer(byte number) {
  byte me, op, t, aim;
  bool ok, holds;
end:
#ifndef MUTANT_REPAIR_WITHOUT_PROOF
  dead[number - 1];  // the proof of death
#else
  number == 1 || dead[1];
#endif
  {
#ifdef MUTANT_LET_GO_FIRST
    d_step { t = tag; ok = (owner == me && state == SETTLING) };
    if :: ok -> set_back(SETTLING, me) :: else fi;
#endif
    op = intent[me];
    aim = target[me];
    if
    :: op != NONE ->
#ifdef MUTANT_INTENT_CLEARED_FIRST
      intent[me] = NONE;
#endif
      d_step { t = tag; holds = (owner == me && state >= CLAIMED && state <= SETTLING && state != ACTIVE) };
#ifdef MUTANT_NEVER_FINISHED
      aim = NO_TARGET;
#endif
      if
      :: holds && aim != NO_TARGET -> d_step { become((aim - 16) / 8, (aim - 16) & 7) }  // only this store was left
      :: holds && aim == NO_TARGET ->
        d_step {  // undo_tallies: absolute values, so it may be done twice
          if
          :: op == FETCH -> out[me] = data[me]
          :: op == SETTLE -> completed[me] = data[me]
          :: op == RETURN -> in[me] = data[me]
          :: else
          fi
        };
        if
        :: state == CLAIMED -> make_available()
        :: else
        fi
      :: else
      fi;
#ifndef MUTANT_NOT_REPUBLISHED
      if
      :: aim != NO_TARGET -> d_step { if :: state == AVAILABLE -> hint[tag] = true :: else fi }
      :: else
      fi;
#endif
      intent[me] = NONE
    :: else
    fi;
    d_step { t = tag; aim = state; ok = (owner == me) };  // let_go
    if
    :: ok && aim == ACTIVE -> set_back(ACTIVE, me)
    :: ok && aim == SETTLING -> set_back(SETTLING, me)
    :: ok && aim == CLAIMED -> intend(MOVE, 0); make_available()
    :: else
    fi;
    atomic { if :: number == 1 -> over[1] = true :: else fi; if :: dead[DOOMED] -> running-- :: else fi }
  } unless { atomic { (number == 1 && dead[1]) -> me = 0; op = 0; t = 0; aim = 0; ok = 0; holds = 0 } }
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
    run Repairer(1);
    if :: SECOND -> run Killer(1); run Repairer(2) :: else fi;
    if :: EXPIRY -> run Expiry(SUPERVISOR) :: else fi;
    run Judge()
  }
}
