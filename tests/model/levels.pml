// SPDX-License-Identifier: Apache-2.0
//
// The rings of one queue, the index over them with its closing protocol, and the fetch that looks twice.
//   push      Rings::push, Rings::open         look      Search::look, Rings::peek, Search::unchanged
//   close     Rings::close, Search::tidy_index  claim    Fetcher::fetch, Rings::retire
// Jobs are published state first, so a claim need not look at the slot. Left out: chunks (chunks.pml), moved hints
// (move.pml). Wider than the code: any ring seen empty may be closed, also by a fetch that found nothing.
//
// Proved: I1, a ring with a live published hint has its bit set; a fetch returns a job that was the best one at some
// instant inside the call; "empty" only if at some instant nothing was available. A process killed anywhere is one
// that never takes its next step, so every kill is in here too.
#ifndef JOBS
#define JOBS 3
#define RINGS 4  // bit j: the ring of job j
#define FIRST 2  // so many jobs are published by the first producer, one after the other; the rest by the second
#define FETCHERS 2
#define FETCHES 1
#define PER_WORD 2  // rings in one word of the index: two, or one
#endif
#define LEVELS 2
#define WORDS (LEVELS / PER_WORD)
#define CELLS (JOBS + 1)
#define VERSIONS 8
#define NONE 255

#define EMPTY 0 /* open */
#define CLOSED 1
#define HINT 2 /* + job */
#define CELL(l, p) cell[(l) * CELLS + (p)]
#define WORD(l) word[(l) / PER_WORD]
#define BIT(l) (1 << ((l) % PER_WORD))

byte cell[LEVELS * CELLS];
byte head[LEVELS], tail[LEVELS];
byte word[WORDS];  // version * 4 + bits

#define LEVEL(j) ((RINGS >> (j)) & 1)
bool published[JOBS], taken[JOBS];
byte place[JOBS], places;  // the order of publication

bool fetching[FETCHERS], empty_seen[FETCHERS];
byte best_seen[FETCHERS];  // a bit for each job that was the best one at some instant of the call

hidden byte i, b;

// What is true at this instant, for every fetch under way; and I1.
inline instant() {
  b = NONE;
  i = 0;
  do
  :: i < JOBS ->
    if
    :: published[i] && !taken[i] ->
      assert(WORD(LEVEL(i)) & BIT(LEVEL(i)));
      if
      :: b == NONE || LEVEL(i) < LEVEL(b) || (LEVEL(i) == LEVEL(b) && place[i] < place[b]) -> b = i
      :: else
      fi
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < FETCHERS ->
    if
    :: fetching[i] && b == NONE -> empty_seen[i] = true
    :: fetching[i] && b != NONE -> best_seen[i] = best_seen[i] | (1 << b)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  b = 0
}

inline fill(expected) {  // the cas on the cell: the linearization point
  d_step {
    found = CELL(l, t);
    if
    :: found == expected ->
      CELL(l, t) = HINT + j;
      published[j] = true;
      place[j] = places;
      places++;
      instant()
    :: else
    fi
  }
}

inline open() {  // a cas loop: as one step, for its failed rounds change nothing
#ifdef MUTANT_OPEN_KEEPS_VERSION
  d_step { if :: WORD(l) & BIT(l) :: else -> WORD(l) = WORD(l) | BIT(l) fi }
#else
  WORD(l) = (((WORD(l) >> 2) + 1) % VERSIONS) * 4 + ((WORD(l) & 3) | BIT(l))
#endif
}

proctype Producer(byte first, beyond) {
  byte j, l, t, found;
  j = first;
  do
  :: j < beyond ->
    l = LEVEL(j);
  again:
    t = tail[l];
    fill(EMPTY);
    if
    :: found == EMPTY
    :: found >= HINT -> d_step { if :: tail[l] == t -> tail[l] = t + 1 :: else fi }; goto again
    :: found == CLOSED ->
#ifdef MUTANT_FILL_BEFORE_OPEN
      fill(CLOSED);
      if :: found == CLOSED -> open() :: else -> goto again fi
#else
      open();
      fill(CLOSED);
      if :: found != CLOSED -> goto again :: else fi
#endif
    fi;
    d_step { if :: tail[l] == t -> tail[l] = t + 1 :: else fi; found = 0; t = 0; l = 0; j++ }
  :: else -> break
  od
}

#define SAW(l) (at[l] != NONE)
#define STILL(l) (!SAW(l) || CELL(l, at[l]) == value[l])

proctype Fetcher(byte me) {
  byte l, h, v, j, n, before;
  byte seen[WORDS], at[LEVELS], value[LEVELS];
  bool ok;
  do
  :: n < FETCHES ->
    d_step { fetching[me] = true; empty_seen[me] = false; best_seen[me] = 0; instant() };
  restart:
    atomic { l = 0; at[0] = NONE; at[1] = NONE; ok = false };
    do  // first look: collect
    :: l < LEVELS ->
      if :: l % PER_WORD == 0 -> seen[l / PER_WORD] = WORD(l) :: else fi;
      if
      :: seen[l / PER_WORD] & BIT(l) ->
        h = head[l];
        v = CELL(l, h);
        if
        :: v >= HINT -> ok = true; break
        :: else -> d_step { at[l] = h; value[l] = v }
        fi
      :: else
      fi;
      l++
    :: else -> break
    od;
    // second look: word by word, proof by proof
#ifndef MUTANT_NO_SECOND_LOOK
    if :: word[0] != seen[0] -> goto restart :: else fi;
    if :: WORDS > 1 && l > 0 && word[WORDS - 1] != seen[WORDS - 1] -> goto restart :: else fi;
#ifndef MUTANT_SECOND_LOOK_AT_INDEX_ONLY
    if :: !STILL(0) -> goto restart :: else fi;
    if :: !STILL(1) -> goto restart :: else fi;
#endif
#endif
    if
    :: ok ->
      d_step {
        j = v - HINT;
        if
        :: !taken[j] ->
          assert(published[j] && (best_seen[me] & (1 << j)));
          taken[j] = true;
          instant()
        :: else -> ok = false
        fi
      };
      d_step { if :: head[l] == h -> head[l] = h + 1 :: else fi };
      if :: !ok -> goto restart :: else fi
    :: else -> assert(empty_seen[me])
    fi;
    d_step {
      fetching[me] = false; empty_seen[me] = false; best_seen[me] = 0;
      l = 0; j = 0; seen[0] = 0; seen[WORDS - 1] = 0
    };
    do  // housekeeping: close what was seen empty, or not
    :: l < LEVELS ->
      if
      :: SAW(l) && value[l] == EMPTY ->
        before = WORD(l);
        if
        :: before & BIT(l) ->
          d_step {
            ok = (CELL(l, at[l]) == EMPTY);
#ifndef MUTANT_CLEAR_WITHOUT_MARK
            if :: ok -> CELL(l, at[l]) = CLOSED :: else fi
#endif
          };
          if
          :: ok ->
#ifdef MUTANT_CLEAR_ANY_VERSION
            d_step { WORD(l) = WORD(l) & ~BIT(l); instant() }
#else
            d_step { if :: WORD(l) == before -> WORD(l) = before & ~BIT(l); instant() :: else fi }
#endif
          :: else
          fi
        :: else
        fi
      :: true
      fi;
      l++
    :: else -> break
    od;
    atomic { n++; l = 0; h = 0; v = 0; before = 0; at[0] = 0; at[1] = 0; value[0] = 0; value[1] = 0; ok = false }
  :: else -> break
  od
}

init {
  atomic {
    CELL(0, 0) = CLOSED;  // a new ring begins closed: Rings::ensure
    CELL(1, 0) = CLOSED;
    run Producer(0, FIRST);
    if :: FIRST < JOBS -> run Producer(FIRST, JOBS) :: else fi;
    run Fetcher(0);
    if :: FETCHERS > 1 -> run Fetcher(1) :: else fi
  }
}
