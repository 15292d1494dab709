#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When crons fire in a year of twenty zones, computed by croniter and zoneinfo.

Prints a line for each zone and expression: both and the times in seconds, with tabs between the three.
croniter says which times the wall shows, zoneinfo which of them come.
"""

import datetime
import sys
import zoneinfo

import croniter

ZONES = [
    "UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Los_Angeles",
    "America/St_Johns", "America/Havana", "America/Santiago", "America/Sao_Paulo", "America/Nuuk", "Atlantic/Azores",
    "Africa/Casablanca", "Africa/Cairo", "Antarctica/Troll", "Asia/Beirut", "Asia/Kolkata", "Asia/Tokyo",
    "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Auckland",
]
EXPRESSIONS = [
    "*/15 * * * *", "7,37 * * * *", "30 2 * * *", "0 0 * * *", "30 1 * * SUN", "0 9 * * MON-FRI", "0 0 13 * FRI",
    "59 23 31 * *", "10-50/20 0-3 1,8,29 MAR,OCT,NOV *", "0 12 29 2 *", "0 0 * * 5#3", "0 0 L * *",
]


def walls(expression: str, year: int) -> list[datetime.datetime]:
    first, last = datetime.datetime(year, 1, 1), datetime.datetime(year + 1, 1, 1)
    iterator = croniter.croniter(expression, first - datetime.timedelta(seconds=1))
    times = []
    while True:
        try:
            time = iterator.get_next(datetime.datetime)
        except croniter.CroniterBadDateError:
            return times
        if time >= last:
            return times
        times.append(time)


def comes(wall: datetime.datetime, zone: zoneinfo.ZoneInfo) -> int | None:
    """The first time at which the wall shows it."""
    time = int(wall.replace(tzinfo=zone, fold=0).timestamp())
    shown = datetime.datetime.fromtimestamp(time, zone).replace(tzinfo=None, fold=0)
    return time if shown == wall else None


def main() -> None:
    year = int(sys.argv[1])
    for expression in EXPRESSIONS:
        shown = walls(expression, year)
        for name in ZONES:
            zone = zoneinfo.ZoneInfo(name)
            times = [time for wall in shown if (time := comes(wall, zone)) is not None]
            print(name, expression, " ".join(map(str, times)), sep="\t")


if __name__ == "__main__":
    main()
