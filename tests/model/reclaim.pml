// SPDX-License-Identifier: Apache-2.0
//
// What a dead lane leaves in the rings: a chunk that it was linking, or leaving. The doomed lane leaves its chunk or
// links another, and may be killed after any step; so may its first repairer, and then the next one begins anew.
// Meanwhile a consumer passes on and a pusher recycles what is freed in another ring.
//   doomed    Rings::retire, leave_chunk, push, link, intend      consumer, pusher  as in chunks.pml
//   repairer  Rings::repair steps 1 and 3, Chunks::settle, Reachable, copy_chunk; that it gives up, and keeps, after 256
//             restarts of a walk is left out
//
// Proved: a chunk that stands in a ring is never freed, one that stands in none is freed exactly once, whoever dies;
// no hint is lost.
#ifndef PUSHES
#define PUSHES 1   // of the pusher, on ring 1
#define TAKES 1    // of the consumer, on ring 0
#define SECOND 0   // whether the first repairer may be killed
#endif
#define CHUNKS 6
#define JOBS (4 + PUSHES)  // 0, 1 stand in ring 0, 2 is the doomed lane's; 3 stands in ring 1, the pusher's follow
#define NONE 255

#define PLACE(c, p, i) ((c) * 16 + (p) * 8 + (i))
#define CHUNK(w) ((w) / 16)
#define AT_LINK(w) (((w) >> 3) & 1)
#define INC(w) ((w) & 7)
#define EMPTY(i) (128 + (i))
#define IS_EMPTY(v) ((v) >= 128)

// Control: state and owner.
#define FREE 0
#define SPARE(lane) (1 + (lane))
#define LINKING(lane) (8 + (lane))
#define LINKED 16
#define DOOMED 0
#define REPAIRER 1   // and 2; they own nothing
#define CONSUMER 3
#define PUSHER 4

byte cell[CHUNKS], next[CHUNKS], status[CHUNKS], inc[CHUNKS];
byte head[2], tail[2];
byte intent[1] = NONE;   // chunk * 8 + incarnation
bool published[JOBS], taken[JOBS];
bool dead[3], over[3];
byte running;

#define RING(j) ((j) < 3 -> 0 : 1)
hidden byte i, k;

inline cas(word, expected, desired) {
  d_step { if :: word == expected -> word = desired :: else fi }
}
inline turn(c, life, from, to) {  // a cas on a chunk's control word
  d_step { ok = (status[c] == from && inc[c] == life); if :: ok -> status[c] = to :: else fi }
}
inline take_chunk(c, lane) {
  d_step {
    c = 0;
    do
    :: c < CHUNKS && status[c] != FREE -> c++
    :: else -> break
    od;
    assert(c < CHUNKS);
    status[c] = SPARE(lane)
  }
}

// Leaves the chunk of h for the next one, v.
inline leave_chunk(lane, r) {
  t = tail[r];
  if :: CHUNK(t) == CHUNK(h) && INC(t) == INC(h) -> cas(tail[r], t, v) :: else fi;
#ifndef MUTANT_LEFT_WITHOUT_INTENT
  if :: lane == DOOMED -> intent[DOOMED] = CHUNK(h) * 8 + INC(h) :: else fi;
#endif
  d_step {
    ok = (head[r] == h);
    if
    :: ok -> assert(inc[CHUNK(v)] == INC(v) && status[CHUNK(v)] >= LINKING(0)); head[r] = v
    :: else
    fi
  };
  if
  :: ok ->
    d_step {
      ok = (status[CHUNK(h)] >= LINKING(0) && inc[CHUNK(h)] == INC(h));
      if :: ok -> status[CHUNK(h)] = SPARE(lane) :: else fi
    };
    if :: ok -> status[CHUNK(h)] = FREE :: else fi
  :: else
  fi;
  if :: lane == DOOMED -> intent[DOOMED] = NONE :: else fi
}

inline push(lane, r, j) {
  ok = false;
push_again:
  t = tail[r];
  if
  :: AT_LINK(t) ->
    n = next[CHUNK(t)];
    if :: tail[r] != t -> goto push_again :: else fi;
    if :: !IS_EMPTY(n) -> cas(tail[r], t, n); goto push_again :: else fi;
    if :: fresh == NONE -> take_chunk(fresh, lane) :: else fi;
    n = next[CHUNK(t)];
    if :: n != EMPTY(INC(t)) -> goto push_again :: else fi;
    d_step { life = (inc[fresh] + 1) & 7; cell[fresh] = j; next[fresh] = EMPTY(life) };
    if :: lane == DOOMED -> intent[DOOMED] = fresh * 8 + life :: else fi;
    d_step { inc[fresh] = life; status[fresh] = LINKING(lane) };
    d_step {
      ok = (next[CHUNK(t)] == n);
      if :: ok -> next[CHUNK(t)] = PLACE(fresh, 0, life); published[j] = true :: else fi
    };
    if
    :: !ok -> status[fresh] = SPARE(lane); if :: lane == DOOMED -> intent[DOOMED] = NONE :: else fi; goto push_again
    :: else
    fi;
    cas(tail[r], t, PLACE(fresh, 1, life));
    turn(fresh, life, LINKING(lane), LINKED);
    if :: lane == DOOMED -> intent[DOOMED] = NONE :: else fi;
    fresh = NONE
  :: else ->
    d_step {
      n = cell[CHUNK(t)];
      ok = (n == EMPTY(INC(t)));
      if :: ok -> cell[CHUNK(t)] = j; published[j] = true :: else fi
    };
    if
    :: ok -> cas(tail[r], t, t + 8)
    :: !ok && !IS_EMPTY(n) -> cas(tail[r], t, t + 8); goto push_again
    :: else -> goto push_again
    fi
  fi
}

proctype Doomed() {
  byte h, v, t, n, fresh = NONE, life;
  bool ok;
  {
    if
    :: h = head[0];
      if
      :: AT_LINK(h) ->
        v = next[CHUNK(h)];
        if :: head[0] == h && !IS_EMPTY(v) -> leave_chunk(DOOMED, 0) :: else fi
      :: else
      fi
    :: push(DOOMED, 0, 2);
      if :: fresh != NONE -> status[fresh] = FREE :: else fi
    fi;
    atomic { over[DOOMED] = true; running-- }
  } unless { atomic { dead[DOOMED] -> h = 0; v = 0; t = 0; n = 0; fresh = 0; life = 0; ok = 0 } }
}

proctype Killer(byte victim) {
end:
  atomic {
    (victim == DOOMED || dead[DOOMED]);
    if :: !over[victim] -> dead[victim] = true :: true fi
  }
}

inline reachable_chunks() {
  r = 0;
  do
  :: r < 2 ->
  walk_again:
    at = head[r];
    do
    :: n = next[CHUNK(at)];
      if
#ifdef MUTANT_WALK_CUT_SHORT
      :: inc[CHUNK(at)] != INC(at) -> break
#else
      // Recycled under our feet: head has gone on, and so must we.
      :: inc[CHUNK(at)] != INC(at) || (IS_EMPTY(n) && INC(n) != INC(at)) -> goto walk_again
#endif
      :: else
      fi;
      found[CHUNK(at)] = INC(at);
      if :: IS_EMPTY(n) -> break :: else -> at = n fi
    od;
    r++
  :: else -> break
  od;
  atomic { walked = true; at = 0; n = 0; r = 0 }
}

// Ends the ownership over a chunk that was found in no ring.
inline free_chunk(from) {
  d_step {
    ok = (status[c] == from && inc[c] == life);
    if
    :: ok ->
      i = 0;
      do  // the truth at this instant
      :: i < 2 ->
        k = head[i];
        do
        :: CHUNK(k) == c || IS_EMPTY(next[CHUNK(k)]) -> break
        :: else -> k = next[CHUNK(k)]
        od;
        assert(CHUNK(k) != c);
        i++
      :: else -> break
      od;
      i = 0;
      k = 0;
      status[c] = FREE
    :: else
    fi
  }
}

inline repair() {
  if  // 1. the chunk that it was leaving
  :: intent[DOOMED] != NONE ->
    c = intent[DOOMED] / 8;
    at = intent[DOOMED] & 7;
#ifdef MUTANT_INTENT_CLEARED_FIRST
    intent[DOOMED] = NONE;
#endif
    d_step { s = status[c]; life = inc[c] };
    if
    :: s == LINKED && life == at ->
      if :: !walked -> reachable_chunks() :: else fi;
      if :: found[c] != life -> free_chunk(LINKED) :: else fi
    :: else
    fi;
    intent[DOOMED] = NONE
  :: else
  fi;
  c = 0;  // 3. chunks that name it
  do
  :: d_step {  // the next one that names it; those that do not never will
      do
      :: c < CHUNKS && status[c] != SPARE(DOOMED) && status[c] != LINKING(DOOMED) -> c++
      :: else -> break
      od;
      if :: c < CHUNKS -> s = status[c]; life = inc[c] :: else -> s = FREE fi
    };
    if
    :: c == CHUNKS -> break
    :: c < CHUNKS && s == SPARE(DOOMED) -> free_chunk(s)
    :: c < CHUNKS && s == LINKING(DOOMED) ->
      if :: !walked -> reachable_chunks() :: else fi;
      if
#ifndef MUTANT_LINKING_FREED
      :: found[c] == life -> turn(c, life, s, LINKED)
#endif
      :: else -> free_chunk(s)
      fi
    fi;
    atomic { c++; s = 0; life = 0; ok = false }
  od;
  atomic {
    walked = false; c = 0; s = 0; life = 0; ok = false;
    do :: k < CHUNKS -> found[k] = NONE; k++ :: else -> break od;
    k = 0
  }
}

proctype Repairer(byte me) {
  byte found[CHUNKS] = NONE;
  byte c, s, life, at, n, r;
  bool ok, walked;
end:
  dead[me - 1];  // the proof of death
  {
    repair();
    atomic { over[me] = true; running-- }
  } unless { atomic { (me == REPAIRER && dead[me]) -> c = 0; s = 0; life = 0; at = 0; n = 0; r = 0; ok = 0; walked = 0;
                      do :: k < CHUNKS -> found[k] = 0; k++ :: else -> break od; k = 0 } }
}

proctype Pusher() {
  byte j = 4, t, n, fresh = NONE, life;
  bool ok;
  do
  :: j < JOBS -> push(PUSHER, 1, j); atomic { j++; t = 0; n = 0; life = 0; ok = false }
  :: else -> break
  od;
  if :: fresh != NONE -> status[fresh] = FREE :: else fi;
  running--
}

proctype Consumer(byte takes; bool last) {
  byte r, h, v, t, n;
  bool ok;
  if :: last -> running == 0 :: else fi;
  do
  :: n < takes ->
    h = head[r];
    v = (AT_LINK(h) -> next[CHUNK(h)] : cell[CHUNK(h)]);
    if :: head[r] != h -> goto next_look :: else fi;
    if
    :: IS_EMPTY(v) && last && r == 0 -> r = 1
    :: IS_EMPTY(v) && !(last && r == 0) -> break
    :: !IS_EMPTY(v) && !AT_LINK(h) ->
      d_step { assert(published[v] && RING(v) == r); taken[v] = true };
      cas(head[r], h, h + 8);
      if :: !last -> n++ :: else fi
    :: !IS_EMPTY(v) && AT_LINK(h) -> leave_chunk(CONSUMER, r)
    fi;
  next_look:
    atomic { h = 0; v = 0; t = 0; ok = false }
  :: else -> break
  od;
  if
  :: last ->
    d_step {
      i = 0;
      do :: i < JOBS -> assert(taken[i] || !published[i]); i++ :: else -> break od;
      i = 0;
      k = 0;
      do :: i < CHUNKS -> if :: status[i] == FREE -> k++ :: else fi; i++ :: else -> break od;
      assert(k == CHUNKS - 2);
      i = 0;
      k = 0
    }
  :: else -> running--
  fi
}

init {
  atomic {
    do
    :: i < 3 ->  // chunks 0, 1: ring 0, full; chunk 2: ring 1, full
      cell[i] = i;
      next[i] = (i == 0 -> PLACE(1, 0, 1) : EMPTY(1));
      inc[i] = 1;
      status[i] = LINKED;
      i++
    :: else -> break
    od;
    i = 0;
    cell[2] = 3;
    published[0] = true;
    published[1] = true;
    published[3] = true;
    taken[0] = true;
    head[0] = PLACE(0, 1, 1);
    tail[0] = PLACE(1, 1, 1);
    head[1] = PLACE(2, 0, 1);
    tail[1] = PLACE(2, 1, 1);
    running = 3;  // the doomed lane or the last of its repairers, the consumer, the pusher
    run Doomed();
    run Killer(DOOMED);
    run Repairer(1);
    if :: SECOND -> run Killer(1); run Repairer(2) :: else fi;
    run Consumer(TAKES, false);
    run Pusher();
    run Consumer(1, true)
  }
}
