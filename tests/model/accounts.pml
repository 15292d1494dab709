// SPDX-License-Identifier: Apache-2.0
//
// What a tenant has waiting in a queue that bounds its tenants: one account, and two tenants who want it. At first tenant X
// has it, and WAITING jobs in it. Each job costs one; the bound of a tenant is MAX.
//   enqueuer  Room::admit_all; TenantAccounts::charge_account, open_account, touch, take_back_charge
//   fetcher   Fetcher::fetch; TenantAccounts::leave_account
//   settle    TenantAccounts::settle_account
//   repairer  Repairer::repair; undo_accounts, keep_charge, leave_account_seat
// One lane may be killed at any step of its operation, and so may its first repairer; the others go on meanwhile. Sums are
// never cached here: that is in `bounds`.
//
// Proved: no job that counts stands in the account of another tenant; no enqueue brings a tenant above its bound, but for
// jobs that came back; and when all is quiet again, the account holds what waits, and an enqueue is accepted exactly when
// there is room, or an account.
#ifndef MAX
#define MAX 1
#define WAITING 1
#define OF_X 1      // enqueuers of X ...
#define OF_Y 1      // ... and of Y
#define FETCHES 1   // by lane 2
#define VICTIM 2    // 0: of X, 1: of Y, 2: the fetcher, 9: nobody
#define SECOND 0    // 1: the first repairer may die too
#endif
#define LANES 3
#define FETCHER 2
#define X 1
#define Y 2
#define NONE 0      // intents
#define ENQUEUE 1
#define FETCH 2

byte key = X, reserved = WAITING, written_off, refill, epoch;
bool closed;                     // a bit of `reserved`
byte seat;
byte in[LANES], out[LANES], in_before[LANES], out_before[LANES];
bool touched[LANES];             // the tally has the lane's present stamp
byte intent[LANES];
bool of_accounts[LANES];         // a bit of the intent
byte waiting[3], returned[3];    // by tenant: the truth; a ghost
bool job_held, dead, first_dead, over;
byte running;

inline nothing_stands_elsewhere() {
  assert(waiting[X] == 0 || key == X);
  assert(waiting[Y] == 0 || key == Y)
}

// ---- within an operation

inline begin_accounts() {
  if
  :: !of_accounts[me] -> touched[me] = false; of_accounts[me] = true
  :: else
  fi
}
inline touch() {
  if
  :: !touched[me] -> d_step { in_before[me] = in[me]; out_before[me] = out[me] }; touched[me] = true
  :: else
  fi
}
/// Sums of words that only grow, but for a repair: as good as read at one instant.
inline sum_out() {
  d_step { sum = written_off; do :: l < LANES -> sum = sum + out[l]; l++ :: else -> break od; l = 0 }
}
inline look_for_use() {  // leaves `used`
  used = false;
#ifndef MUTANT_USE_NOT_MINDED
  l = 0;
  do
  :: l < LANES -> d_step { used = used || (l != me && of_accounts[l] && touched[l]); l++ }
  :: else -> break
  od;
#endif
  l = 0
}

inline settle() {
  mark = refill;
  old = written_off;
  d_step { r = reserved; used = closed };
  if
  :: !used ->
    look_for_use();
    if
    :: !used ->
      d_step { sum = 0; do :: l < LANES -> sum = sum + in[l]; l++ :: else -> break od; l = 0 };
      if
      :: reserved == r && !closed ->
        d_step { used = (written_off == old); if :: used -> written_off = r - sum :: else fi };
        if :: used -> d_step { if :: refill == mark -> refill = 0 :: else fi } :: else fi
      :: else
      fi
    :: else
    fi
  :: else
  fi;
  d_step { mark = 0; old = 0; r = 0; sum = 0; used = false }
}

inline open_account(t) {  // leaves `ok`, or `again`
  d_step { seat == 0 -> seat = me + 1 };
  if
  :: key == t && !closed -> again = true
  :: else ->
    e = epoch;
    d_step { r = reserved; used = closed };
    if
    :: !used ->
      sum_out();
      if
      :: r == sum ->
        look_for_use();
        if
#ifdef MUTANT_DEATH_UNNOTICED
        :: !used ->
#else
        :: !used && epoch == e ->
#endif
          touch();
#ifdef MUTANT_NOT_CLOSED
          ok = (reserved == r);
#else
          d_step { ok = (reserved == r && !closed); if :: ok -> closed = true :: else fi };
#endif
          if
          :: ok ->
            key = t;
            epoch++;
            d_step { reserved = r + 1; closed = false };
            in[me]++
          :: else
          fi
        :: else
        fi
      :: else
      fi
    :: else
    fi
  fi;
  seat = 0;
  d_step { r = 0; sum = 0; used = false; e = 0 }
}

inline charge(t) {  // leaves `ok`
  begin_accounts();
  do
  ::
    d_step { ok = false; again = false; used = (key == t && !closed) };
    if
    :: !used ->
      open_account(t);
      if :: !again -> break :: else fi
    :: else ->
      if :: refill != 0 -> settle() :: else fi;
      d_step { r = reserved; used = closed };
      if
      :: !used && key == t ->
        sum_out();
        if
        :: r < sum || r + 1 > MAX + sum ->
#ifdef MUTANT_OLD_SUM_BELIEVED
          assert(r >= sum);
          break
#else
          if :: reserved == r && !closed -> assert(r >= sum); break :: else fi
#endif
        :: else ->
          touch();
          d_step { ok = (reserved == r && !closed); if :: ok -> reserved++ :: else fi };
          if :: ok -> in[me]++; break :: else fi
        fi
      :: else
      fi
    fi
  od;
  atomic { r = 0; sum = 0; used = false; again = false }
}

inline enqueue(t, may_fail) {
  d_step { of_accounts[me] = false; intent[me] = ENQUEUE };
  charge(t);
  if
  :: ok ->
    if
    :: d_step {
        waiting[t]++;
        assert(waiting[t] <= MAX + returned[t]);
        intent[me] = NONE; of_accounts[me] = false;
        nothing_stands_elsewhere()
      }
    :: may_fail ->  // no slot, no block, the queue is full
      out[me]++;
      d_step { intent[me] = NONE; of_accounts[me] = false; ok = false }
    fi
  :: else -> d_step { intent[me] = NONE; of_accounts[me] = false }
  fi
}

proctype Enqueuer(byte me, tenant) {
  byte r, sum, l, mark, old, e;
  bool used, ok, again, room;
  {
    enqueue(tenant, true);
    ok = false;
    if :: me == VICTIM -> over = true :: else fi;
    running--;
    if
    :: tenant == Y && VICTIM != me ->  // the last word
      running == 0;
      if :: refill != 0 -> settle() :: else fi;
      assert(refill == 0 && !closed && seat == 0);
      sum_out();
      assert(reserved - sum == waiting[key]);
      room = (key == Y -> waiting[Y] < MAX : waiting[X] == 0);
      enqueue(Y, false);
      assert(ok == room)
    :: else
    fi
  } unless { atomic { (me == VICTIM && dead) -> r = 0; sum = 0; l = 0; mark = 0; old = 0; e = 0; used = 0; ok = 0; again = 0 } }
}

proctype Fetcher(byte me) {
  byte n;
  {
    do
    :: n < FETCHES && waiting[X] > 0 ->
      d_step { of_accounts[me] = false; intent[me] = FETCH };
      d_step { if :: waiting[X] > 0 -> waiting[X]--; job_held = true :: else fi };  // the claim
      if
      :: job_held ->
        begin_accounts();
        touch();
        out[me]++;  // once its mark says so, and no other's business
        d_step { intent[me] = NONE; of_accounts[me] = false; job_held = false }  // and its ack
      :: else -> intent[me] = NONE
      fi;
      n++
    :: else -> break
    od;
    if :: me == VICTIM -> over = true :: else fi;
    running--
  } unless { atomic { (me == VICTIM && dead) -> n = 0 } }
}

proctype Killer() {
  atomic { if :: VICTIM < LANES && !over -> dead = true :: true fi }
}
proctype SecondKiller() {
  atomic { if :: SECOND && dead && !over -> first_dead = true :: true fi }
}

inline repair() {
  if
  :: intent[VICTIM] != NONE ->
    if
    :: of_accounts[VICTIM] && touched[VICTIM] ->
      in[VICTIM] = in_before[VICTIM];
      out[VICTIM] = out_before[VICTIM];
#ifndef MUTANT_UNDONE_WITHOUT_RECOUNT
      d_step { refill++ };
#endif
      epoch++
    :: else
    fi;
    d_step {
      if :: job_held && VICTIM == FETCHER -> job_held = false; waiting[X]++; returned[X]++ :: else fi;
      nothing_stands_elsewhere()
    };
    d_step { intent[VICTIM] = NONE; of_accounts[VICTIM] = false }
  :: else
  fi;
  if
  :: seat == VICTIM + 1 ->
    if :: closed -> d_step { refill++ }; d_step { reserved++; closed = false } :: else fi;
    seat = 0
  :: else
  fi
}

proctype Repairer(byte me) {
  byte r, sum, l, mark, old;
  bool used;
end:
  dead;
  { repair() } unless { first_dead };
  if :: first_dead -> repair() :: else fi;
  if :: refill != 0 -> settle() :: else fi;
  over = true;
  running--
}

init {
  atomic {
    in[0] = WAITING;
    waiting[X] = WAITING;
    running = OF_X + OF_Y + 1;
    if :: OF_X -> run Enqueuer(0, X) :: else fi;
    if :: OF_Y -> run Enqueuer(1, Y) :: else fi;
    run Fetcher(FETCHER);
    run Repairer(VICTIM);
    run Killer();
    run SecondKiller()
  }
}
