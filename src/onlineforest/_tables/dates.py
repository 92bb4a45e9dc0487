"""Numbers from dates and times. Knows nothing of files."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from onlineforest._tables.columns import PARTS_OF_TIMES

_EPOCH = datetime(1970, 1, 1)  # all times are in UTC, without saying so
_DAY = timedelta(days=1)
_LEAST_SECONDS = 1e8  # a smaller number may be a year, or a date without separators
_SECONDS = re.compile(r"[+-]?\d{9,}(?:\.\d*)?", re.ASCII)
_YEAR_MONTH_DAY = re.compile(r"(\d{4})[-/](\d\d?)[-/](\d\d?)(?!\d)", re.ASCII)
EXAMPLES = "2024-01-31 or 2024-01-31T12:30:00+01:00, or seconds since 1970"


@lru_cache(1 << 16)
def parts_of(text: str) -> dict[str, float] | None:
    """The number of each of `PARTS_OF_TIMES`; None if the text is no date or time.

    Reads ISO 8601, also with a blank for the T, with slashes and without leading zeros; and seconds
    since 1970. Times with a zone are converted to UTC.
    """
    try:
        time = _time_of(text)
    except (ValueError, OverflowError):
        return None
    hour = time.hour + time.minute / 60 + (time.second + time.microsecond / 1e6) / 3600
    numbers = ((time - _EPOCH) / _DAY, hour, time.weekday(), time.month)
    return dict(zip(PARTS_OF_TIMES, map(float, numbers), strict=True))


def _time_of(text: str) -> datetime:
    if _SECONDS.fullmatch(text) and abs(float(text)) >= _LEAST_SECONDS:
        return _EPOCH + timedelta(seconds=float(text))
    padded = _YEAR_MONTH_DAY.sub(
        lambda found: f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}", text, count=1
    )
    time = datetime.fromisoformat(padded)
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
