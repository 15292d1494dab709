// SPDX-License-Identifier: Apache-2.0
//
// Compaction: a run of full chunks strictly between the chunk of head and the chunk of tail is replaced by one chunk
// with its live hints, or by none, while consumers pass and publishers recycle; the splicer may be killed after any
// step.
//   splicer   splice                             consumer  Rings::peek, retire, leave_chunk
//   repairer  Rings::repair steps 2 and 3        pusher    Rings::push, link, as in chunks.pml
// At first the ring leads over chunks 0, 1, 2 to 3, each with one job in its one cell.
//
// Proved: head never enters a chunk that has been freed; no hint is lost; an empty cell at head proves emptiness.
// Chunks may leak when head comes too near (Rings::collect_leaks), but never be used twice. Reachability is judged
// in one step here; how it is found out is in reclaim.pml.
#ifndef DEAD
#define DEAD 2       // bit j: job j has ended before
#define CONSUMERS 1
#define TAKES 2      // how many hints each of them passes
#define PUSHES 0
#define KILL 1
#endif
#define CHUNKS 6
#define JOBS (4 + PUSHES)
#define NONE 255

#define PLACE(c, p, i) ((c) * 16 + (p) * 8 + (i))
#define CHUNK(w) ((w) / 16)
#define AT_LINK(w) (((w) >> 3) & 1)
#define INC(w) ((w) & 7)
#define EMPTY(i) (128 + (i))
#define IS_EMPTY(v) ((v) >= 128)

#define FREE 0
#define SPARE 1
#define SPARE_S 2    // the splicer's
#define LINKING 3
#define LINKING_S 4  // the splicer's
#define DROPPING 5   // the splicer's
#define LINKED 6

byte cell[CHUNKS], next[CHUNKS], status[CHUNKS], inc[CHUNKS];
byte head, tail;
bool published[JOBS], taken[JOBS];
bool dead, splicer_done;
byte running;

hidden byte i, k;

inline cas(word, expected, desired) {
  d_step { if :: word == expected -> word = desired :: else fi }
}
inline turn(c, life, from, to) {  // a cas on a chunk's control word
  d_step { ok = (status[c] == from && inc[c] == life); if :: ok -> status[c] = to :: else fi }
}
inline take_chunk(c, as) {
  d_step {
    c = 0;
    do
    :: c < CHUNKS && status[c] != FREE -> c++
    :: else -> break
    od;
    if :: c < CHUNKS -> status[c] = as :: else -> c = NONE fi
  }
}

inline head_stays() {
  d_step { ok = (CHUNK(head) == CHUNK(h) && INC(head) == INC(h) && !AT_LINK(head)) }
}

inline leave_chunk() {
  t = tail;
  if :: CHUNK(t) == CHUNK(h) && INC(t) == INC(h) -> cas(tail, t, v) :: else fi;
  d_step {
    ok = (head == h);
    if
    :: ok -> assert(inc[CHUNK(v)] == INC(v) && status[CHUNK(v)] >= LINKING); head = v
    :: else
    fi
  };
  if
  :: ok ->
    d_step {  // linked, not yet marked so, or marked by a splicer: one cas takes it
      ok = (status[CHUNK(h)] >= LINKING && inc[CHUNK(h)] == INC(h));
      if :: ok -> status[CHUNK(h)] = SPARE :: else fi
    };
    if :: ok -> status[CHUNK(h)] = FREE :: else fi
  :: else
  fi
}

proctype Splicer() {
  byte h, t, link, after, v, n, kept = NONE, fresh = NONE, life, run_[2], length, marked;
  bool ok, spliced, settled;
  {
    h = head;
    t = tail;
    head_stays();
    if :: !ok || CHUNK(h) == CHUNK(t) -> goto done :: else fi;
    link = next[CHUNK(h)];
    if :: IS_EMPTY(link) || inc[CHUNK(h)] != INC(h) -> goto done :: else fi;
    after = link;
    do  // the run, and what lives in it
    :: CHUNK(after) != CHUNK(t) && length < 2 ->
      v = cell[CHUNK(after)];
      n = next[CHUNK(after)];
      if
      :: inc[CHUNK(after)] != INC(after) || IS_EMPTY(n) || IS_EMPTY(v) -> break
      :: else
      fi;
      if
      :: !taken[v] && kept != NONE -> break
      :: !taken[v] && kept == NONE -> kept = v
      :: else
      fi;
      atomic { run_[length] = after; length++; after = n; v = 0; n = 0 }
    :: else -> break
    od;
    if :: length == 0 || (length == 1 && kept != NONE) -> goto done :: else fi;
    if
    :: kept != NONE ->
      take_chunk(fresh, SPARE_S);
      if :: fresh == NONE -> goto done :: else fi
    :: else
    fi;
    do
    :: marked < length ->
      turn(CHUNK(run_[marked]), INC(run_[marked]), LINKED, DROPPING);
      if :: ok -> marked++ :: else -> break fi
    :: else -> break
    od;
    v = after;
    if
    :: fresh != NONE ->
      d_step {
        life = (inc[fresh] + 1) & 7;
        cell[fresh] = kept;
        next[fresh] = after;
        inc[fresh] = life;
        status[fresh] = LINKING_S;
        v = PLACE(fresh, 0, life)
      }
    :: else
    fi;
    head_stays();
    if
    :: ok && marked == length ->
      d_step { spliced = (next[CHUNK(h)] == link); if :: spliced -> next[CHUNK(h)] = v :: else fi }
    :: else
    fi;
#ifdef MUTANT_NO_SECOND_LOOK
    settled = spliced;
#else
    head_stays();
    settled = spliced && ok;
#endif
    do
    :: marked > 0 ->
      marked--;
      turn(CHUNK(run_[marked]), INC(run_[marked]), DROPPING, (settled -> SPARE_S : LINKED));
#ifdef MUTANT_UNMARKED_BY_STORE
      d_step {
        if
        :: !ok -> status[CHUNK(run_[marked])] = LINKED; inc[CHUNK(run_[marked])] = INC(run_[marked])
        :: else
        fi
      };
#endif
      if :: ok && settled -> status[CHUNK(run_[marked])] = FREE :: else fi
    :: else -> break
    od;
    if
    :: fresh != NONE && spliced -> turn(fresh, life, LINKING_S, LINKED)
    :: fresh != NONE && !spliced -> status[fresh] = FREE
    :: else
    fi;
  done:
    atomic { splicer_done = true; running-- }
  } unless {
    atomic {
      dead -> h = 0; t = 0; link = 0; after = 0; v = 0; n = 0; kept = 0; fresh = 0; life = 0; length = 0; marked = 0;
      run_[0] = 0; run_[1] = 0; ok = 0; spliced = 0; settled = 0
    }
  }
}

proctype Killer() {
  atomic { if :: KILL && !splicer_done -> dead = true :: true fi }
}

// After the death: each chunk that names the splicer, by one cas.
proctype Repairer() {
  byte c, s, life, at, h, v, t;
  bool ok, reachable;
end:
  dead;
#ifndef MUTANT_HEAD_NOT_MOVED_ON
peek:  // moves a head on that stands before the link that was changed: no process can follow the old one any more
  h = head;
  if
  :: AT_LINK(h) ->
    v = next[CHUNK(h)];
    if :: head != h -> goto peek :: else fi;
    if :: !IS_EMPTY(v) -> leave_chunk(); goto peek :: else fi
  :: else
  fi;
#endif
  c = 0;
  do
  :: atomic {  // the next chunk that names it; those that do not never will
      do
      :: c < CHUNKS && status[c] != SPARE_S && status[c] != LINKING_S && status[c] != DROPPING -> c++
      :: else -> break
      od;
      if :: c < CHUNKS -> s = status[c]; life = inc[c] :: else -> s = FREE fi
    };
    if
    :: s == FREE -> break
    :: s == SPARE_S -> turn(c, life, SPARE_S, FREE)
    :: s == LINKING_S || s == DROPPING ->
      d_step {
        at = head;
        do
        :: CHUNK(at) == c || IS_EMPTY(next[CHUNK(at)]) -> break
        :: else -> at = next[CHUNK(at)]
        od;
        reachable = (CHUNK(at) == c);
        at = 0
      };
      turn(c, life, s, (reachable -> LINKED : FREE))
    fi;
    atomic { c++; s = 0; life = 0; reachable = false; ok = false }
  od;
  running--
}

proctype Pusher() {
  byte j = 4, t, n, fresh = NONE, life;
  bool ok;
  do
  :: j < JOBS ->
  again:
    t = tail;
    if
    :: AT_LINK(t) ->
      n = next[CHUNK(t)];
      if :: tail != t -> goto again :: else fi;
      if :: !IS_EMPTY(n) -> cas(tail, t, n); goto again :: else fi;
      if :: fresh == NONE -> take_chunk(fresh, SPARE); if :: fresh == NONE -> break :: else fi :: else fi;
      n = next[CHUNK(t)];
      if :: n != EMPTY(INC(t)) -> goto again :: else fi;
      d_step { life = (inc[fresh] + 1) & 7; cell[fresh] = EMPTY(life); next[fresh] = EMPTY(life) };
      d_step { cell[fresh] = j; inc[fresh] = life; status[fresh] = LINKING };
      d_step {
        ok = (next[CHUNK(t)] == n);
        if :: ok -> next[CHUNK(t)] = PLACE(fresh, 0, life); published[j] = true :: else fi
      };
      if :: !ok -> status[fresh] = SPARE; goto again :: else fi;
      cas(tail, t, PLACE(fresh, 1, life));
      turn(fresh, life, LINKING, LINKED);
      fresh = NONE
    :: else -> cas(tail, t, t + 8); goto again  // the cell is filled: its chunk was linked with it
    fi;
    atomic { j++; t = 0; n = 0; life = 0; ok = false }
  :: else -> break
  od;
  if :: fresh != NONE -> status[fresh] = FREE :: else fi;
  running--
}

proctype Consumer(byte takes; bool last) {
  byte h, v, t, n;
  bool was_empty, ok;
  if :: last -> running == 0 :: else fi;
  do
  :: n < takes ->
    h = head;
    d_step {
      v = (AT_LINK(h) -> next[CHUNK(h)] : cell[CHUNK(h)]);
      was_empty = true;
      i = 0;
      do
      :: i < JOBS -> if :: published[i] && !taken[i] -> was_empty = false :: else fi; i++
      :: else -> break
      od;
      i = 0
    };
    if :: head != h -> goto next_look :: else fi;
    if
    :: IS_EMPTY(v) -> assert(was_empty); break
    :: !IS_EMPTY(v) && !AT_LINK(h) ->
      d_step { assert(published[v]); taken[v] = true };
      cas(head, h, h + 8);
      if :: !last -> n++ :: else fi
    :: !IS_EMPTY(v) && AT_LINK(h) ->
      leave_chunk()
    fi;
  next_look:
    atomic { h = 0; v = 0; t = 0; was_empty = false; ok = false }
  :: else -> break
  od;
  if
  :: last -> d_step { i = 0; do :: i < JOBS -> assert(taken[i] || !published[i]); i++ :: else -> break od; i = 0 }
  :: else -> running--
  fi
}

init {
  atomic {
    do
    :: i < 4 ->
      cell[i] = i;
      next[i] = (i < 3 -> PLACE(i + 1, 0, 1) : EMPTY(1));
      inc[i] = 1;
      status[i] = LINKED;
      published[i] = true;
      taken[i] = (DEAD >> i) & 1;
      i++
    :: else -> break
    od;
    i = 0;
    head = PLACE(0, 0, 1);
    tail = PLACE(3, 1, 1);
    running = 4;
    run Splicer();
    if :: KILL -> run Repairer(); run Killer() :: else fi;
    if :: PUSHES > 0 -> run Pusher() :: else -> running-- fi;
    run Consumer(TAKES, false);
    if :: CONSUMERS > 1 -> run Consumer(TAKES, false) :: else -> running-- fi;
    run Consumer(1, true)
  }
}
