"""Parse schedules as people and models write them; compute their due times.

``30m`` is once from now, ``every 2h`` an interval, ``0 8 * * 1-5`` cron in a time zone, an ISO time once. Plain phrases
(``tomorrow 9:00``, ``weekdays at 8``) become one of these. A due time is called a slot; it is an instant, in whole
seconds since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from difflib import SequenceMatcher
from enum import StrEnum

from hermes.core.dataclasses import dataclass

MIN_EVERY_SECONDS = 10
MAX_EVERY_SECONDS = 366 * 86400
MAX_TEXT_CHARS = 200
SUGGESTIONS = 3

GRAMMAR = (
    "30m, 2h or 1d: once, so long from now. every 30m, every 2h: again and again. Five-field cron: 0 8 * * 1-5. "
    "An ISO time: 2026-03-01T09:00, once. Phrases: tomorrow 9:00, today at 18:30, monday at 8, weekdays at 8, "
    "every day at 7:30, every monday at 9, monthly on the 1st at 9."
)
"""What ``parse`` accepts, in words for the schema of the tool and for help texts."""


class ScheduleKind(StrEnum):
    ONCE = "once"
    EVERY = "every"
    CRON = "cron"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job runs. ``text`` is the canonical form, which ``parse`` reads as the same schedule again.

    ``at`` is the slot of ONCE and the begin of EVERY, whose slots follow every ``seconds``. ``is_relative``: counted
    from the moment the job was made, not by the calendar, so it moves with a clock that is set.
    """

    kind: ScheduleKind
    text: str
    at: float = 0.0
    seconds: int = 0
    is_relative: bool = False


class ScheduleError(ValueError):
    """A text that is no schedule. ``nearest`` are the right ones it resembles most, best first."""

    def __init__(self, reason: str, nearest: tuple[str, ...]) -> None:
        super().__init__(f"{reason} Nearest: {'; '.join(nearest)}." if nearest else reason)
        self.reason = reason
        self.nearest = nearest


def parse(text: str, *, now: float, zone: tzinfo) -> Schedule:
    """Read a schedule. ScheduleError names three right ones that resemble a wrong one."""
    plain = _normalize(text)
    if not plain:
        raise ScheduleError("The schedule is empty.", _nearest("", now, zone))
    if len(text) > MAX_TEXT_CHARS:
        raise ScheduleError("The schedule is too long.", _nearest(text[:MAX_TEXT_CHARS], now, zone))
    try:
        found = _read(plain, now, zone)
    except ValueError as error:
        raise ScheduleError(f"{text.strip()!r} is no schedule ({error}).", _nearest(plain, now, zone)) from None
    if found is None:
        raise ScheduleError(f"{text.strip()!r} is no schedule.", _nearest(plain, now, zone))
    return found


def next_after(schedule: Schedule, after: float, zone: tzinfo) -> float | None:
    """Return the first slot later than ``after``; None when there is none any more."""
    match schedule.kind:
        case ScheduleKind.ONCE:
            return schedule.at if schedule.at > after else None
        case ScheduleKind.EVERY:
            passed = max(0, int((after - schedule.at) // schedule.seconds))
            slot = schedule.at + passed * schedule.seconds
            while slot <= after or slot <= schedule.at:  # the first slot is one interval after the begin
                slot += schedule.seconds
            return slot
        case ScheduleKind.CRON:
            return next(cron_slots(schedule.text, after, zone), None)


def cron_slots(expression: str, after: float, zone: tzinfo) -> Iterator[float]:
    """Yield the slots of a cron expression after a moment, each once.

    A time that a change of the clocks leaves out is due right after the gap; one that comes twice is due once, unless
    the expression names every hour. The instants come in order, whatever the local clock does.
    """
    from cronsim import CronSim  # loaded when the first cron expression is met

    last = after
    for moment in CronSim(expression, datetime.fromtimestamp(after, zone)):
        at = moment.timestamp()
        if at > last:
            last = at
            yield at


# Reading

_UNITS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
    "w": 604800, "week": 604800, "weeks": 604800,
}  # fmt: skip
_DAYS = {
    "sunday": 0, "sun": 0, "monday": 1, "mon": 1, "tuesday": 2, "tue": 2, "tues": 2, "wednesday": 3, "wed": 3,
    "thursday": 4, "thu": 4, "thurs": 4, "friday": 5, "fri": 5, "saturday": 6, "sat": 6,
}  # fmt: skip
_MACROS = {
    "@hourly": "0 * * * *", "hourly": "0 * * * *", "every hour": "0 * * * *",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_TIME = r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))? ?(?P<half>am|pm)?(?: o'?clock)?"
_AT = rf"(?: at)? {_TIME}"
_DURATION = r"(?P<count>\d+(?:\.\d+)?) ?(?P<unit>[a-z]+)"
_WEEKDAYS = "|".join(sorted(_DAYS, key=len, reverse=True))

# Chinese phrases, as the English ones that say the same.
_CHINESE = (
    (r"(\d+)\s*(?:个)?(?:分钟|分)(?:之?后|以后)", r"\1m"),
    (r"(\d+)\s*(?:个)?小时(?:之?后|以后)", r"\1h"),
    (r"(\d+)\s*天(?:之?后|以后)", r"\1d"),
    (r"半(?:个)?小时(?:之?后|以后)", "30m"),
    (r"每隔?\s*(\d+)\s*(?:个)?(?:分钟|分)", r"every \1m"),
    (r"每隔?\s*(\d+)\s*(?:个)?小时", r"every \1h"),
    (r"每隔?\s*(\d+)\s*天", r"every \1d"),
    (r"每(?:个)?小时", "hourly"),
    (r"每(?:个)?工作日|工作日", "weekdays "),
    (r"每(?:个)?周末|周末", "weekends "),
    (r"每天|每日", "every day "),
    (r"明天", "tomorrow "),
    (r"后天", "in two days "),
    (r"今天|今晚", "today "),
    *(
        (rf"每(?:个)?(?:周|星期|礼拜){sign}", f"every {day} ")
        for sign, day in zip("一二三四五六", ("mon", "tue", "wed", "thu", "fri", "sat"), strict=True)
    ),
    (r"每(?:个)?(?:周|星期|礼拜)[日天]", "every sun "),
    (r"每(?:个)?月\s*(\d+)\s*[号日]", r"monthly on the \1 "),
    (r"(?:早上|上午|凌晨|早晨)\s*", ""),
    (r"(?:下午|晚上|傍晚)\s*(\d{1,2})(?::(\d{2})|点(?:(\d{1,2})分)?|点半)?", None),
    (r"中午\s*(?:12\s*点)?", "12:00"),
    (r"(\d{1,2})\s*点\s*半", r"\1:30"),
    (r"(\d{1,2})\s*点\s*(\d{1,2})\s*分?", r"\1:\2"),
    (r"(\d{1,2})\s*点(?:钟|整)?", r"\1:00"),
)


def _normalize(text: str) -> str:
    plain = text.strip().strip("\"'`").translate(str.maketrans("：，　", ":, "))
    if not plain.isascii():
        for pattern, replacement in _CHINESE:
            plain = re.sub(pattern, _afternoon if replacement is None else replacement, plain)
    plain = " ".join(plain.split())
    is_cron = len(plain.split()) == 5 and plain[:1] in "*0123456789"
    return plain if is_cron or _ISO.fullmatch(plain) else plain.lower().rstrip(".!").replace(",", " ").strip()


def _afternoon(found: re.Match[str]) -> str:
    hour = int(found[1]) % 12 + 12
    minute = found[2] or found[3] or ("30" if found[0].endswith("半") else "00")
    return f"{hour}:{minute.zfill(2)}"


def _read(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    for reader in (_read_duration, _read_every, _read_cron, _read_iso, _read_phrase):
        found = reader(plain, now, zone)
        if found is not None:
            return found
    return None


def _read_duration(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    words = re.sub(r"^in ", "", plain)
    words = re.sub(r" (?:from now|later)$", "", words)
    words = re.sub(r"^(?:an?|one) (?=[a-z]+$)", "1 ", words).replace("half an hour", "30m")
    seconds = _seconds(words)
    if seconds is None:
        return None
    if not 1 <= seconds <= MAX_EVERY_SECONDS:
        raise ValueError("a time from now is between one second and a year")
    return _once(now + seconds, zone, is_relative=True)


def _read_every(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    del zone
    found = re.fullmatch(r"(?:every|each) (.+)", plain)
    if found is None or plain in _MACROS:
        return None
    words = re.sub(r"^(?=(?:minute|hour|week)$)", "1 ", found[1])
    seconds = _seconds(words)
    if seconds is None:
        return None
    if not MIN_EVERY_SECONDS <= seconds <= MAX_EVERY_SECONDS:
        raise ValueError(f"an interval is between {MIN_EVERY_SECONDS} seconds and a year")
    return Schedule(ScheduleKind.EVERY, f"every {_short(seconds)}", now, seconds, is_relative=True)


def _read_cron(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    expression = _MACROS.get(plain, plain)
    fields = expression.split()
    if len(fields) != 5 or not re.fullmatch(r"[\d*/,\-]+", fields[0]):
        return None
    from cronsim import CronSimError

    try:
        first = next(cron_slots(expression, now, zone), None)
    except CronSimError as error:
        raise ValueError(f"as cron it is wrong ({error})") from None
    if first is None:
        raise ValueError("as cron it is never due")
    return Schedule(ScheduleKind.CRON, expression)


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?", re.IGNORECASE
)


def _read_iso(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    if not _ISO.fullmatch(plain):
        return None
    text = re.sub(r"[T ](\d):", r"T0\1:", plain.upper().replace(" +", "+").replace(" -", "-").replace(" Z", "Z"))
    moment = datetime.fromisoformat(text.replace(" ", "T"))
    return _once_in_future(moment if moment.tzinfo else moment.replace(tzinfo=zone), now, zone)


def _read_phrase(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    here = datetime.fromtimestamp(now, zone)
    if found := re.fullmatch(rf"(?P<day>today|tonight|tomorrow|in two days|day after tomorrow){_AT}", plain):
        days = {"today": 0, "tonight": 0, "tomorrow": 1}.get(found["day"], 2)
        return _once_in_future(_on_day(here, days, found), now, zone)
    if found := re.fullmatch(rf"(?:at )?{_TIME}", plain):
        if not (found["minute"] or found["half"] or plain.startswith("at ")):
            return None  # a bare number is no time
        moment = _on_day(here, 0, found)
        return _once_in_future(moment if moment.timestamp() > now else _on_day(here, 1, found), now, zone)
    if found := re.fullmatch(rf"(?:next |on |this )?(?P<day>{_WEEKDAYS}){_AT}", plain):
        ahead = (_DAYS[found["day"]] - here.isoweekday() % 7) % 7
        moment = _on_day(here, ahead, found)
        return _once_in_future(moment if moment.timestamp() > now else _on_day(here, ahead + 7, found), now, zone)
    return _read_recurring(plain, now, zone)


def _read_recurring(plain: str, now: float, zone: tzinfo) -> Schedule | None:
    every_day = rf"(?:(?:every|each) ?(?:day|morning|evening|night)|daily|everyday){_AT}"
    on_weekdays = rf"(?:(?:every |on )?(?:weekdays?|workdays?|working days?)){_AT}"
    on_weekends = rf"(?:(?:every |on )?weekends?){_AT}"
    weekly = rf"(?:(?:every|each|weekly on) )(?P<days>(?:{_WEEKDAYS})s?(?:(?: and | )(?:{_WEEKDAYS})s?)*){_AT}"
    plural = rf"(?:on )?(?P<days>(?:{_WEEKDAYS})s(?:(?: and | )(?:{_WEEKDAYS})s?)*){_AT}"
    monthly = rf"(?:monthly|every month)(?: on)?(?: the)? (?P<date>\d{{1,2}})(?:st|nd|rd|th)?{_AT}"
    for pattern, days in ((every_day, "*"), (on_weekdays, "1-5"), (on_weekends, "0,6")):
        if found := re.fullmatch(pattern, plain):
            return _read_cron("{1} {0} * * {2}".format(*_hour_minute(found), days), now, zone)
    if found := re.fullmatch(weekly, plain) or re.fullmatch(plural, plain):
        names = [word for word in re.split(r" and | ", found["days"]) if word]
        numbers = sorted({_DAYS.get(word) or _DAYS.get(word.removesuffix("s"), 0) for word in names})
        hour, minute = _hour_minute(found)
        return _read_cron(f"{minute} {hour} * * {','.join(map(str, numbers))}", now, zone)
    if found := re.fullmatch(monthly, plain):
        hour, minute = _hour_minute(found)
        return _read_cron(f"{minute} {hour} {int(found['date'])} * *", now, zone)
    return None


def _hour_minute(found: re.Match[str]) -> tuple[int, int]:
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("with am or pm an hour is between 1 and 12")
        hour = hour % 12 + (12 if found["half"] == "pm" else 0)
    if hour > 23 or minute > 59:
        raise ValueError("a time is between 0:00 and 23:59")
    return hour, minute


def _on_day(here: datetime, days: int, found: re.Match[str]) -> datetime:
    hour, minute = _hour_minute(found)
    return (here + timedelta(days=days)).replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)


def _once_in_future(moment: datetime, now: float, zone: tzinfo) -> Schedule:
    try:
        at = moment.timestamp()
    except (OverflowError, ValueError):
        raise ValueError("that year cannot be reckoned with") from None
    if at <= now:
        raise ValueError("that time has passed")
    if at > now + 100 * 366 * 86400:
        raise ValueError("that is more than a hundred years from now")
    return _once(at, zone)


def _once(at: float, zone: tzinfo, *, is_relative: bool = False) -> Schedule:
    whole = float(round(at))
    return Schedule(ScheduleKind.ONCE, datetime.fromtimestamp(whole, zone).isoformat(), whole, is_relative=is_relative)


def _seconds(words: str) -> int | None:
    """``90m``, ``2 hours``, ``1h 30m``; None for anything else."""
    total, rest = 0.0, words.strip()
    while rest:
        found = re.match(rf"{_DURATION}(?:(?: and)? |$|(?=\d))", rest)
        if found is None or found["unit"] not in _UNITS:
            return None
        total += float(found["count"]) * _UNITS[found["unit"]]
        rest = rest[found.end() :]
    return round(total) if words.strip() else None


def _short(seconds: int) -> str:
    for unit, size in (("w", 604800), ("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


# Suggestions


def _nearest(plain: str, now: float, zone: tzinfo) -> tuple[str, ...]:
    """Return three right schedules, with the numbers of the wrong one where they fit."""
    numbers = [int(number) for number in re.findall(r"\d{1,4}", plain)][:3]
    count = next((number for number in numbers if 1 <= number <= 999), 30)
    hour = next((number for number in numbers if number <= 23), 9)
    minute = numbers[1] if len(numbers) > 1 and numbers[0] == hour and numbers[1] <= 59 else 0
    time = f"{hour}:{minute:02d}"
    day = next(
        (name for name in ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday") if name[:3] in plain),
        "monday",
    )
    candidates = (
        f"{count}m", f"{count}h", f"{count}d", f"every {count}m", f"every {count}h", f"every {count}d",
        f"tomorrow {time}", f"every day at {time}", f"weekdays at {time}", f"every {day} at {time}", f"{day} at {time}",
        f"monthly on the 1st at {time}", f"{minute} {hour} * * *", f"{minute} {hour} * * 1-5",
        (datetime.fromtimestamp(now, zone) + timedelta(days=1)).strftime(f"%Y-%m-%dT{hour:02d}:{minute:02d}"),
    )  # fmt: skip
    ranked = sorted(candidates, key=lambda each: -SequenceMatcher(None, plain, each).ratio())
    return tuple(each for each in ranked if _is_right(each, now, zone))[:SUGGESTIONS]


def _is_right(text: str, now: float, zone: tzinfo) -> bool:
    try:
        return _read(_normalize(text), now, zone) is not None
    except ValueError:
        return False


def longest_prefix(words: list[str], read: Callable[[str], Schedule]) -> tuple[Schedule, list[str]] | None:
    """Split what somebody typed into a schedule and the rest: as many words as make one."""
    for count in range(min(len(words), 8), 0, -1):
        try:
            return read(" ".join(words[:count])), words[count:]
        except ScheduleError:
            continue
    return None
