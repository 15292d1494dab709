// SPDX-License-Identifier: Apache-2.0
//
// Chunks: linking, leaving and recycling them between two rings that share one pool. A chunk has one cell here, and
// its link; the closing protocol is in levels.pml.
//   pusher    Rings::push, link, Chunks::take, renew    consumer  Rings::peek, retire, leave_chunk, Chunks::keep_or_free
//
// Proved: an empty cell at head proves that the ring was empty at the instant at which it was read; a hint found in
// a ring was put there; tail never names a chunk that has been left; no hint is lost, no chunk is lost or in two
// places. Built with -DNP it proves lock-freedom: with so many pushes and fetches no cycle of steps is possible at
// all.
#ifndef JOBS
#define JOBS 4
#define RINGS 12   // bit j: the ring of job j
#define FIRST 2    // so many jobs are pushed by the first pusher, one after the other; the rest by the second
#define CONSUMERS 2
#define BOTH_ON 0  // the ring that both consumers serve; 2: one each
#define TAKES 2    // how many hints each of them passes
#define CHUNKS 5
#endif
#define NONE 255

// A place: chunk, cell 0 or 1 (1 is the link), incarnation.
#define PLACE(c, p, i) ((c) * 16 + (p) * 8 + (i))
#define CHUNK(w) ((w) / 16)
#define AT_LINK(w) (((w) >> 3) & 1)
#define INC(w) ((w) & 7)
// A cell: the empty word of an incarnation, or a hint. A link: the same, or the place of cell 0 of the next chunk.
#define EMPTY(i) (128 + (i))
#define IS_EMPTY(v) ((v) >= 128)

#define FREE 0
#define SPARE 1
#define LINKING 2
#define LINKED 3

byte cell[CHUNKS], next[CHUNKS], status[CHUNKS], inc[CHUNKS];
byte head[2], tail[2];
bool published[JOBS], taken[JOBS];
byte running;

#define RING(j) ((RINGS >> (j)) & 1)
hidden byte i, k;

inline cas(word, expected, desired) {
  d_step { if :: word == expected -> word = desired :: else fi }
}

inline publish(word, expected, desired) {
  d_step {
    found = word;
    if :: found == expected -> word = desired; published[j] = true :: else fi
  }
}

proctype Pusher(byte first, beyond) {
  byte j, r, t, n, found, life, fresh = NONE;
  j = first;
  do
  :: j < beyond ->
    r = RING(j);
  again:
    t = tail[r];
    if
    :: AT_LINK(t) ->
      n = next[CHUNK(t)];
      if :: tail[r] != t -> goto again :: else fi;
      if
      :: !IS_EMPTY(n) -> cas(tail[r], t, n); goto again
      :: else
      fi;
      if  // take_chunk
      :: fresh == NONE ->
        d_step {
          fresh = 0;
          do
          :: fresh < CHUNKS && status[fresh] != FREE -> fresh++
          :: else -> break
          od;
          assert(fresh < CHUNKS);
          status[fresh] = SPARE
        }
      :: else
      fi;
      n = next[CHUNK(t)];  // link
#ifdef MUTANT_NO_INCARNATION
      if :: !IS_EMPTY(n) -> goto again :: else fi;
#else
      if :: n != EMPTY(INC(t)) -> goto again :: else fi;
#endif
      d_step { life = (inc[fresh] + 1) & 7; cell[fresh] = EMPTY(life); next[fresh] = EMPTY(life) };  // clean
      cell[fresh] = j;
      d_step { inc[fresh] = life; status[fresh] = LINKING };
      publish(next[CHUNK(t)], n, PLACE(fresh, 0, life));
      if :: found != n -> status[fresh] = SPARE; goto again :: else fi;
      cas(tail[r], t, PLACE(fresh, 1, life));
#ifdef MUTANT_LINKED_BY_STORE
      d_step { inc[fresh] = life; status[fresh] = LINKED };
#else
      d_step { if :: status[fresh] == LINKING && inc[fresh] == life -> status[fresh] = LINKED :: else fi };
#endif
      fresh = NONE
    :: else ->
      n = EMPTY(INC(t));
      publish(cell[CHUNK(t)], n, j);
      if
      :: found == n -> cas(tail[r], t, t + 8)
      :: !IS_EMPTY(found) -> cas(tail[r], t, t + 8); goto again
      :: else -> goto again  // another incarnation: tail was stale
      fi
    fi;
    atomic { j++; t = 0; n = 0; found = 0; life = 0 }
  :: else -> break
  od;
  if :: fresh != NONE -> status[fresh] = FREE :: else fi;
  running--
}

// Takes hints of one ring; the last one, when all others are done, takes what is left in both.
proctype Consumer(byte r, takes; bool last) {
  byte h, v, t, n;
  bool was_empty;
  if :: last -> running == 0 :: else fi;
  do
  :: n < takes ->
    h = head[r];
    d_step {
      v = (AT_LINK(h) -> next[CHUNK(h)] : cell[CHUNK(h)]);
      was_empty = true;
      i = 0;
      do
      :: i < JOBS -> if :: published[i] && !taken[i] && RING(i) == r -> was_empty = false :: else fi; i++
      :: else -> break
      od;
      i = 0
    };
#ifndef MUTANT_HEAD_NOT_VALIDATED
    if :: head[r] != h -> goto next_look :: else fi;
#endif
    if
    :: IS_EMPTY(v) ->
      assert(was_empty);  // what a fetch would answer
      if
      :: last && r == 0 -> r = 1
      :: else -> break
      fi
    :: !IS_EMPTY(v) && !AT_LINK(h) ->
      d_step { assert(published[v] && RING(v) == r); if :: !taken[v] -> taken[v] = true :: else fi };
      cas(head[r], h, h + 8);
      if :: !last -> n++ :: else fi
    :: !IS_EMPTY(v) && AT_LINK(h) ->  // leave_chunk
#ifndef MUTANT_NO_TAIL_HELP
      t = tail[r];
      if :: CHUNK(t) == CHUNK(h) && INC(t) == INC(h) -> cas(tail[r], t, v) :: else fi;
#endif
      d_step { t = head[r]; if :: t == h -> head[r] = v :: else fi };
      if
      :: t == h ->
        d_step {  // linked, or not yet marked so by its slow linker: one cas takes it
          assert(status[CHUNK(h)] >= LINKING && inc[CHUNK(h)] == INC(h));
#ifndef OUTCOME_ONLY  // asks not for the invariant, but for what follows
          assert(CHUNK(tail[r]) != CHUNK(h) || INC(tail[r]) != INC(h));
#endif
          status[CHUNK(h)] = SPARE
        };
        status[CHUNK(h)] = FREE
      :: else
#ifdef MUTANT_LOSER_FREES_TOO
        -> status[CHUNK(h)] = FREE
#endif
      fi
    fi;
  next_look:
    atomic { h = 0; v = 0; t = 0; was_empty = false }
  :: else -> break
  od;
  if
  :: last ->
    d_step {  // all published was taken; all chunks but the last of each ring are free
      i = 0;
      do :: i < JOBS -> assert(taken[i]); i++ :: else -> break od;
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
    :: i < 2 ->
      cell[i] = EMPTY(1);
      next[i] = EMPTY(1);
      inc[i] = 1;
      status[i] = LINKED;
      head[i] = PLACE(i, 0, 1);
      tail[i] = PLACE(i, 0, 1);
      i++
    :: else -> break
    od;
    i = 0;
    running = 4;
    run Pusher(0, FIRST);
    run Pusher(FIRST, JOBS);
    run Consumer((BOTH_ON == 2 -> 0 : BOTH_ON), TAKES, false);
    if :: CONSUMERS > 1 -> run Consumer((BOTH_ON == 2 -> 1 : BOTH_ON), TAKES, false) :: else -> running-- fi;
    run Consumer(0, 1, true)
  }
}
