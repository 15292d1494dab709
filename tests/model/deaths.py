# SPDX-License-Identifier: Apache-2.0
"""What each mutant breaks: of a model the promise that must fail, and the mutants that must break it.

A promise is a piece of the assertion as SPIN prints it, without macros; spaces and brackets do not count. STUCK is an end
in which a process still waits for something, ROUND a cycle in which nobody gets anywhere. A mutant that dies of
something else has not shown that its own promise is looked after, and fails.
"""

import re

VIOLATED = "assertion violated "
STUCK, ROUND = "invalid end state", "non-progress cycle"

DEATHS: dict[str, dict[str, str]] = {
    "levels": {
        # who has announced a job finds its level in the index
        "word[": "CLEAR_WITHOUT_MARK CLEAR_ANY_VERSION OPEN_KEEPS_VERSION FILL_BEFORE_OPEN",
        # what a fetch returns was the best of an instant
        "published[j] && (best_seen[me] & (1 << j))": "NO_SECOND_LOOK SECOND_LOOK_AT_INDEX_ONLY",
    },
    "move": {
        # a move that says done was done, or fits between two others
        "(moved_here[to] >> (before / 4)) || (found & (found - 1))": "OTHER_COUNTS_AS_MOVED TAKEN_COUNTS_AS_MOVED",
        # the job is in sight: a hint leads to it, and the index to the hint
        "ok_hint && (word & (1 << ring))": "STATE_FIRST NO_HELP MOVED_HINT_TRUSTED",
        # "empty" was true of an instant
        "empty_seen[me]": "NO_SECOND_LOOK",
    },
    "join": {
        # the third job is let run once, and what has ended is known
        "released == 1 && ended[0] && ended[1] && ended[2]":
            "LOOK_BEFORE_MARK RELEASE_WITHOUT_CAS NOT_MARKED_AGAIN NOT_MENDED",
        # no bit is written after the head has gone
        "!(gone)": "MARKED_TWICE",
    },
    "chunks": {
        # tail does not name a chunk that is left
        "(tail[r] / 16) != (h / 16)": "NO_TAIL_HELP",
        ROUND: "NO_TAIL_HELP.spin",
        # an empty cell at head proves emptiness
        "was_empty": "NO_TAIL_HELP.stray HEAD_NOT_VALIDATED NO_INCARNATION",
        # the chunk that head leaves is one of the ring's, in its life
        "status[(h / 16)] >= 2": "LOSER_FREES_TOO",
        # no chunk is lost
        "k == (4 - 2)": "LINKED_BY_STORE",
    },
    "splice": {
        # head enters no chunk that was freed
        "inc[(v / 16)] == (v & 7)": "HEAD_NOT_MOVED_ON NO_SECOND_LOOK UNMARKED_BY_STORE",
    },
    "reclaim": {
        # a chunk in a ring is not freed
        "(k / 16) != c": "WALK_CUT_SHORT LINKING_FREED",
        # no chunk is lost
        "k == (6 - 2)": "LEFT_WITHOUT_INTENT INTENT_CLEARED_FIRST",
    },
    "sleep": {
        # no process sleeps beside a job that it serves
        "!((available[q] > 0) && asleep[w]":
            "SLEEPER_KEEPS_WAKE WAKE_KEPT LOOK_BEFORE_LYING_DOWN PARK_READ_LATE WAKE_BEFORE_PUSH REPAIR_WAKES_NOBODY",
    },
    "parking": {
        # every job is done in the end
        "state[j] == 1": "NO_SECOND_LOOK LOOK_BEFORE_GIVING REPAIR_LOOKS_NOT",
        "at_work <= 1": "PERMIT_WITHOUT_CAS",
        ROUND: "OWN_PERMIT_IN_THE_WAY",
    },
    "bell": {
        "wakes_at <= shortest": "LEASE_NOT_LOOKED_AT_AGAIN BELL_READ_LATE SAYS_NOTHING",
        "wakes_at <= due_of[i]": "INBOX_NOT_LOOKED_AT_AGAIN DEATH_RINGS_NOT",
    },
    "busy": {
        # a queue is not called quiet while it has a job whose enqueue has returned
        "(ours != 0) || !((there[0] && returned[0])":
            "NOT_ANNOUNCED LOOK_FIRST SAID_BY_STORE NO_VERSION MARKED_FIRST",
        # nor, in the end, while it has any
        "(ours != 0) || !(there[0] || there[1]": "REPAIR_MARKS_NOTHING",
    },
    "bounds": {
        # `reserved` is never too low
        "(reserved - written_off) >= s": "RECOUNT TAKEN_BACK_FROM_RESERVED",
        # when all is quiet an enqueue is refused exactly when there is no room
        "is_full == !(ok)": "CACHE_KEPT UNDONE_WITHOUT_RECOUNT",
        # the bound holds
        "waiting <= (2 + returned)": "ADD_INSTEAD_OF_CAS",
    },
    "accounts": {
        # what is believed of an account is not below nothing
        "r >= sum": "OLD_SUM_BELIEVED",
        # no job stands in another's account
        "(waiting[1] == 0) || (key == 1)": "DEATH_UNNOTICED USE_NOT_MINDED NOT_CLOSED",
        # when all is quiet it holds what waits
        "(reserved - sum) == waiting[key]": "UNDONE_WITHOUT_RECOUNT",
    },
    "repair": {
        # the job completes once
        "(s == 1) && (acked <= 1)": "REPAIR_WITHOUT_PROOF LET_GO_FIRST",
        # every tally says what happened
        "s == 0": "TALLY_BEFORE_INTENT",
        # the job is lost, and a process waits for it for ever
        STUCK: "INTENT_CLEARED_FIRST NEVER_FINISHED NOT_REPUBLISHED",
    },
    "room": {
        # no process is let in while one who came before waits
        "(before_me &": "PASSES",
        # who is first in line does not sleep beside room
        "!(asleep[f])) || ((reserved - out) >= 1)":
            "SLEEPS_WITHOUT_A_LOOK CALLED_CLEARED_LATE LEAVES_IN_SILENCE CLEARED_WHATEVER_CAME REST_OUTLIVED "
            "SLEEPS_LONG_AFTER_A_REST_CUT_SHORT REPAIR_CALLS_NOBODY REPAIR_MINDS_THE_CALL",
    },
    "flows": {
        # each job is served, but for one whose producer died
        "(job[i] == 3) || ((job[i] == 0) && dead)":
            "TAKEN_BACK_UNNOTICED ENDING_COUNTS_AS_LISTED NO_SECOND_LOOK NOT_REPUBLISHED DISSOLVED_WITHOUT_PLACES",
        # a flow has one live place in the line
        "c <= 1": "LISTED_BEFORE_THE_JOB",
        # a flow without jobs is idle in the end
        "state[i] == 3": "LISTED_BEFORE_THE_HINT TURN_BEFORE_HINT",
    },
    "keys": {
        # one job of the key lives at a time
        "slot[2]==4)&&committed[owner[2]]))) ? (1) : (0) ))<=1":
            "LOOK_FIRST AHEAD_PASSED_OVER FILLING_PASSED_OVER HELD_PASSED_OVER PUBLISHED_BEFORE_COMMIT "
            "COMMIT_CLEARED_FIRST",
        # no entry is left behind
        "slot[(cell[n]-1)]!=5": "COUNTED_LATE COUNTED_DOWN_FIRST ENTRY_LEFT FREED_FIRST",
        # a job ends once
        "there==((1+brought)-gone)": "SEIZED_BY_STORE",
        # a job that was there lives on until another has its place, and only until then
        "there==1": "ENDED_BEFORE_COMMIT GIVEN_BACK_AFTER_COMMIT",
        ROUND: "BOTH_STEP_BACK",
        # no process waits for ever
        "(slot[s]!=4)&&(slot[s]!=2)": "NONE_STEPS_BACK",
    },
    "turns": {
        # the turn that is taken is the next
        "(next == at)": "STORED",
        # each level has its exact share
        "turns[0] == (((t + 2) / 3) + (t / 3))": "NOT_MOVED",
        # each turn leads to one job
        "(first[0] + first[1]) + spent) + died) == t": "CLAIMED_FIRST TURN_NOT_KEPT",
        # and it is one of the cycle that is in force
        "cycle[((bank * 3) + at)] == level": "WORD_FIRST VERSION_KEPT",
    },
    "drop": {
        # as many are gone as were too many
        "gone == ((there + gone) > 3": "NO_SEAT",
        # there was no room when it looked
        "(at_least + cost) > (2 + held)": "OLD_SUM_BELIEVED",
        # who was dropped has been counted
        "gone == (dropped_by[0] + dropped_by[1])": "GONE_AT_ONCE",
        # the bound holds
        "there <= 2": "VICTIMS_COMMITTED_LATER",
        # what is counted is there
        "(refill > 0) || (((((reserved - written_off)":
            "UNCOMMITTED_DROPPED INTENT_CLEARED_FIRST OUT_ADDED",
    },
}


def broke(promise: str, printed: str) -> bool:
    """Whether what SPIN printed is of this promise."""
    def squeeze(text: str) -> str:
        return "".join(c for c in text if c not in "() \t")
    begins, ends = r"(?<!\w)", r"(?!\w)" if promise[-1].isalnum() else ""
    return re.search(begins + re.escape(squeeze(promise)) + ends, squeeze(printed.removeprefix(VIOLATED))) is not None


def death_of(model: str, mutant: str) -> str:
    """The promise that this mutant must break."""
    found = [promise for promise, mutants in DEATHS.get(model, {}).items() if mutant in mutants.split()]
    if len(found) != 1:
        raise RuntimeError(f"tests/model/deaths.py names {len(found)} promises for {model}/{mutant}")
    return found[0]


def strangers(models: dict[str, set[str]]) -> list[str]:
    """What is named here and not run."""
    return [f"{model}/{mutant}" for model, promises in DEATHS.items() for mutants in promises.values()
            for mutant in mutants.split() if mutant not in models.get(model, set())]
