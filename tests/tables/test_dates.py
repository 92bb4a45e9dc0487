from __future__ import annotations

import io
from datetime import UTC, date, datetime, time, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from onlineforest._tables.columns import PARTS_OF_TIMES, ColumnSpec, ColumnType, TimePart
from onlineforest._tables.csv_tables import CsvTable
from onlineforest._tables.dates import parts_of
from onlineforest._tables.json_tables import JsonTable
from onlineforest._tables.parquet_tables import ParquetTable

PARTS = [TimePart("t", part) for part in PARTS_OF_TIMES]
SPECS = {part.name: ColumnSpec(ColumnType.NUMBER, time=part) for part in PARTS}


def test_parts_are_those_of_pandas():
    rng = np.random.default_rng(0)
    for seconds in rng.integers(-(10**10), 10**10, size=200).tolist():
        moment = pd.Timestamp(seconds, unit="s")
        hour = moment.hour + moment.minute / 60 + moment.second / 3600
        expected = [seconds / 86400, hour, moment.day_of_week, moment.month]
        for text in (moment.isoformat(), str(moment), f"{moment.isoformat()}Z", str(seconds)):
            if text.lstrip("-").isdecimal() and abs(seconds) < 10**8:
                continue
            found = parts_of(text)
            assert list(found) == ["days", "hour", "weekday", "month"]
            np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2024-01-31", "2024-01-31T00:00:00"),
        ("2024/1/5", "2024-01-05"),
        ("2024-1-5 7:30", None),
        ("2024-1-5 07:30", "2024-01-05T07:30:00Z"),
        ("2024-01-31T00:30:00+02:00", "2024-01-30T22:30:00"),
        ("20240131", "2024-01-31"),
        ("1706659200", "2024-01-31"),
        ("1706659200.0", "2024-01-31"),
        ("2024", None),
        ("31/01/2024", None),
        ("12:30", None),
        ("2024-02-30", None),
        ("soon", None),
        ("1706659200000", None),  # milliseconds
        ("0001-01-01T00:00:00+02:00", None),
        ("12345678", None),
    ],
)
def test_formats_of_dates(text, same):
    assert parts_of(text) == (None if same is None else parts_of(same))
    assert same is None or parts_of(text) is not None


def test_all_formats_of_files_give_the_same_numbers():
    moments = [datetime(2024, 1, 31, 12, 30), None, datetime(1969, 12, 31, 6, 0, 0, 500_000)]
    texts = ["" if each is None else each.isoformat() for each in moments]
    csv_file = io.BytesIO("\n".join(["t,x", *(f"{text},1" for text in texts)]).encode())
    lines = "\n".join(f'{{"x": 1, "t": "{text}"}}' for text in texts).encode()

    def nothing():
        return None

    tables = [
        CsvTable(csv_file, "a", None, nothing, nothing),
        JsonTable(io.BytesIO(lines), "a", nothing, nothing),
    ]
    zoned = [None if each is None else each.replace(tzinfo=UTC) for each in moments]
    east = timezone(timedelta(hours=9))
    columns = [
        pa.array(moments, pa.timestamp("us")),
        pa.array(moments, pa.timestamp("ns")),
        pa.array(zoned, pa.timestamp("ms", "Europe/Paris")),
        pa.array(texts),
        pa.array([None if e is None else str(e.astimezone(east)) for e in zoned]),
        pa.array(texts).dictionary_encode(),
    ]
    for column in columns:
        file = io.BytesIO()
        parquet.write_table(pa.table({"t": column}), file)
        tables.append(ParquetTable(file, "a"))
    for table in tables:
        found = pa.concat_tables(table.read(SPECS, pytest.fail))
        rows = [[values[i].as_py() for values in found.columns] for i in range(3)]
        assert rows[0] == [pytest.approx(19753 + 12.5 / 24), 12.5, 2.0, 1.0]
        assert rows[1] == [None] * 4
        assert rows[2] == [
            pytest.approx(-0.75 + 0.5 / 86400),
            pytest.approx(6.000139, abs=1e-6),
            2,
            12,
        ]
        assert found.schema.types == [pa.float64()] * 4


def test_days_and_times_of_day_in_parquet():
    file = io.BytesIO()
    parquet.write_table(pa.table({"t": [date(2024, 2, 29)], "u": [time(12, 30)]}), file)
    table = ParquetTable(file, "a.parquet")
    (found,) = table.read(SPECS, pytest.fail)
    assert [values[0].as_py() for values in found.columns] == [19782.0, 0.0, 3.0, 2.0]
    specs = {"u (hour)": ColumnSpec(ColumnType.NUMBER, time=TimePart("u", "hour"))}
    bad = []
    list(ParquetTable(file, "a.parquet").read(specs, bad.append))
    assert str(bad[0]).startswith(
        "a.parquet, row 1: column 'u' holds '12:30:00.000000', which is not"
    )


def test_a_value_that_is_no_date_makes_its_row_bad():
    def table():
        file = io.BytesIO(b"t,x\n2024-01-31,1\nsoon,2\n,3\n2024-02-01,4\n")
        return CsvTable(file, "a.csv", None, lambda: None, lambda: None)

    bad = []
    (found,) = table().read({**SPECS, "x": ColumnSpec(ColumnType.NUMBER)}, bad.append)
    assert list(map(str, bad)) == [
        "a.csv, line 3: column 't' holds 'soon', which is not a date or time such as 2024-01-31 or "
        "2024-01-31T12:30:00+01:00, or seconds since 1970"
    ]
    assert found["x"].to_pylist() == [1, 3, 4]
    assert found["t (weekday)"].to_pylist() == [2.0, None, 3.0]
    part = TimePart("t", "month")
    required = {"t (month)": ColumnSpec(ColumnType.NUMBER, is_required=True, time=part)}
    list(table().read(required, bad.append))
    assert str(bad[-1]) == "a.csv, line 4: the value of column 't' is missing"
