from __future__ import annotations

import gzip
import io
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise, repeat

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from onlineforest._tables import csv_blocks as _csv_blocks
from onlineforest._tables.columns import ColumnSpec, ColumnType, InferredType, TableError
from onlineforest._tables.csv_blocks import end_of_last_record, read_blocks
from onlineforest._tables.csv_tables import CsvTable
from onlineforest._tables.tables import find_column, open_table, rebatch, sample_rows, skip_rows

NUMBER, TEXT, INTEGER = (
    ColumnSpec(ColumnType.NUMBER),
    ColumnSpec(ColumnType.TEXT),
    ColumnSpec(ColumnType.INTEGER, is_required=True),
)
CODE, LEVEL = ColumnSpec(ColumnType.CODE), ColumnSpec(ColumnType.LEVEL)


def table_of(data, delimiter=None):
    return CsvTable(io.BytesIO(data), "a.csv", delimiter, lambda: None, lambda: None)


def read(data, specs, **options):
    """All good rows as a dict of lists, and the messages about bad rows."""
    bad = []
    tables = list(table_of(data, **options).read(specs, lambda row: bad.append(str(row))))
    if not tables:
        return {name: [] for name in specs}, bad
    return pa.concat_tables(tables).to_pydict(), bad


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,x\n2.5,y\n",
        b"a,b\n1,x\n2.5,y",  # no newline at the end
        b"a,b\r\n1,x\r\n2.5,y\r\n",
        b"a,b\r1,x\r2.5,y\r",
        b"\xef\xbb\xbfa,b\n1,x\n2.5,y\n",
        b"\n\na,b\n\n1,x\n\n2.5,y\n\n",
        b'"a","b"\n"1","x"\n"2.5","y"\n',
        b"a;b\n1;x\n2.5;y\n",
        b"a\tb\n1\tx\n2.5\ty\n",
        b" a , b \n 1 ,x\n+2.5e0,y\n",
        b"b,c,a\nx,,1\ny,zzz,2.5\n",
    ],
)
def test_equivalent_files_give_the_same_rows(data):
    rows, bad = read(data, {"a": NUMBER, "b": TEXT})
    assert rows == {"a": [1.0, 2.5], "b": ["x", "y"]}
    assert bad == []


def test_missing_values_are_null_and_bools_are_numbers():
    rows, bad = read(
        b"a,b\n,true\nNA,False\n ,1\n?,\nnan,0\n-1e3,TRUE\n", {"a": NUMBER, "b": NUMBER}
    )
    nan = None
    assert [None if v != v else v for v in rows["a"]] == [nan, nan, nan, nan, nan, -1000.0]
    assert rows["b"] == [1.0, 0.0, 1.0, None, 0.0, 1.0]
    assert bad == []


def test_line_numbers_are_right_after_a_quoted_newline():
    data = b'a,b\n1,"two\nlines"\n2,"say ""hi"""\nx,z\n3,z\n'
    rows, bad = read(data, {"a": NUMBER, "b": TEXT})
    assert rows == {"a": [1.0, 2.0, 3.0], "b": ["two\nlines", 'say "hi"', "z"]}
    assert bad == ["a.csv, line 5: column 'a' holds 'x', which is not a number"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1", "the row has 1 field, but the header has 3"),
        (b"1,2,3,4", "the row has 4 fields, but the header has 3"),
        (b"abc,y,3", "column 'a' holds 'abc', which is not a number"),
        (b"1_0,y,3", "column 'a' holds '1_0', which is not a number"),
        (b"0x10,y,3", "column 'a' holds '0x10', which is not a number"),
        (b"inf,y,3", "column 'a' holds 'inf', which is outside ±3.403e+38"),
        (b"1e39,y,3", "column 'a' holds '1e39', which is outside ±3.403e+38"),
        (b"1e999,y,3", "column 'a' holds '1e999', which is outside ±3.403e+38"),
        (b"1,y,", "the value of column 'c' is missing"),
        (b"1,y,NA", "the value of column 'c' is missing (NA)"),
        (b"1,y,3.5", "column 'c' holds '3.5', but its first values are integers"),
        (b"1,y,0x1F", "column 'c' holds '0x1F', but its first values are integers"),
        (b"1,y,007", "column 'c' holds '007', but its first values are integers"),
        (b"1,,3", "the value of column 'b' is missing"),
        (b"1,\xff,3", r"column 'b' is not UTF-8: '\\xff'"),
        (b"\x1b[31m,y,3", r"column 'a' holds '\x1b[31m', which is not a number"),
    ],
)
def test_bad_rows_are_reported_and_skipped(line, message):
    specs = {"a": NUMBER, "b": ColumnSpec(ColumnType.TEXT, is_required=True), "c": INTEGER}
    rows, bad = read(b"a,b,c\n1,x,10\n" + line + b"\n2,z,20\n", specs)
    assert rows == {"a": [1.0, 2.0], "b": ["x", "z"], "c": [10, 20]}
    assert len(bad) == 1 and bad[0].startswith(f"a.csv, line 3: {message}")


ODD_LEVELS = [
    "nan",
    "None",
    "NA",
    "1",
    "1.0",
    "007",
    "true",
    " ",
    " red ",
    "x" * 10_000,
    "\U0001f333\U00020bb7",
    'say "hi"',
    "two\nlines",
    "a,b",
    "e\u0301",
    "\xe9",
]


def in_parquet(tmp_path, columns):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def read_parquet(path, specs):
    bad = []
    with closing(open_table(str(path))) as table:
        tables = list(table.read(specs, lambda row: bad.append(str(row))))
    return pa.concat_tables(tables).to_pydict(), [text.split(", ", 1)[1] for text in bad]


@pytest.mark.parametrize("is_parsed_by_rows", [False, True])
def test_levels_are_the_text_of_the_file_and_only_empty_ones_are_missing(
    tmp_path, is_parsed_by_rows
):
    import csv

    levels = [*ODD_LEVELS, "", "red"]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(
        [("a", "b"), *((each, "1") for each in levels)]
    )
    data = text.getvalue() + ("1,2,3\n" if is_parsed_by_rows else "")
    rows, bad = read(data.encode(), {"a": LEVEL})
    assert rows == {"a": [*ODD_LEVELS, None, "red"]} and len(bad) == is_parsed_by_rows
    path = in_parquet(
        tmp_path, {"a": [*levels, None], "b": pa.array(levels[:1] * 19).dictionary_encode()}
    )
    assert read_parquet(path, {"a": LEVEL})[0] == {"a": [*ODD_LEVELS, None, "red", None]}
    required = {"a": ColumnSpec(ColumnType.LEVEL, is_required=True)}
    assert read(data.encode(), required)[0] == {"a": [*ODD_LEVELS, "red"]}
    rows, bad = read_parquet(path, required)
    assert rows == {"a": [*ODD_LEVELS, "red"]}
    assert bad == [f"row {row}: the value of column 'a' is missing" for row in (17, 19)]


def test_codes_are_whole_numbers_of_any_spelling(tmp_path):
    cells = [
        "7",
        "7.0",
        "7.",
        "007",
        "+7",
        " 7",
        "-7",
        "true",
        "False",
        "",
        "NA",
        "NAN",
        "?",
        "-0.0",
    ]
    codes = [7, 7, 7, 7, 7, 7, -7, 1, 0, None, None, None, None, 0]
    data = "\n".join(["a,b", *(f"{cell},1" for cell in cells), ""])
    assert read(data.encode(), {"a": CODE}) == ({"a": codes}, [])
    rows, bad = read(f"{data}red,1\n1.5,1\n{'9' * 19},1\n5,1\n".encode(), {"a": CODE})
    assert rows == {"a": [*codes, 5]}
    reason = "but its categories are whole numbers of at most 18 digits"
    assert bad == [
        f"a.csv, line {line}: column 'a' holds {cell!r}, {reason}"
        for line, cell in ((16, "red"), (17, "1.5"), (18, "9" * 19))
    ]
    assert read_parquet(in_parquet(tmp_path, {"a": cells}), {"a": CODE}) == ({"a": codes}, [])
    for column, found, rows_ in (
        (pa.array([7, None, 10**18 - 1], pa.int64()), [7, None, 10**18 - 1], ()),
        (pa.array([7, 10**18, 2**63], pa.uint64()), [7], (2, 3)),
        (pa.array([7.0, float("nan"), 1.5, np.inf, 1e18]), [7, None], (3, 4, 5)),
        (pa.array([Decimal("7.00"), Decimal("1.50"), None]), [7, None], (2,)),
        (pa.array([True, False, None]), [1, 0, None], ()),
        (pa.array(["7", "x", None]), [7, None], (2,)),
    ):
        rows, bad = read_parquet(in_parquet(tmp_path, {"a": column}), {"a": CODE})
        assert rows == {"a": found}
        assert [text.split(":")[0] for text in bad] == [f"row {row}" for row in rows_]
        assert all(reason in text for text in bad)


def test_columns_of_other_types_are_levels_as_a_csv_file_holds_them(tmp_path):
    noon = datetime(2020, 1, 2, 12)
    for column, levels in (
        (pa.array([7, None, 2**62]), ["7", None, str(2**62)]),
        (pa.array([7.0, None, float("nan")]), ["7", None, None]),
        (pa.array([Decimal("7.00")]), ["7"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([date(2020, 1, 2)]), ["2020-01-02"]),
        (pa.array([noon], pa.timestamp("s")), ["2020-01-02 12:00:00"]),
        (pa.array([noon], pa.timestamp("us")), ["2020-01-02 12:00:00"]),
        (pa.array([noon], pa.timestamp("us", "UTC")), ["2020-01-02 12:00:00Z"]),
        (pa.array([noon.time()]), ["12:00:00"]),
    ):
        assert read_parquet(in_parquet(tmp_path, {"a": column}), {"a": LEVEL}) == (
            {"a": levels},
            [],
        )
    rows, bad = read_parquet(in_parquet(tmp_path, {"a": [1.5, 2.0]}), {"a": LEVEL})
    assert rows == {"a": ["2"]} and bad[0].startswith("row 1: column 'a' holds '1.5', but")


def test_text_in_parquet_is_read_as_numbers_row_by_row(tmp_path):
    path = in_parquet(
        tmp_path, {"a": ["1.5", None, "NA", "oops", "inf"], "b": ["1", "2", "3", "4", "x"]}
    )
    hinted = ColumnSpec(ColumnType.NUMBER, hint="; look there")
    rows, bad = read_parquet(path, {"a": hinted, "b": ColumnSpec(ColumnType.INTEGER)})
    assert rows == {"a": [1.5, None, None], "b": [1, 2, 3]}
    assert bad == [
        "row 4: column 'a' holds 'oops', which is not a number; look there",
        "row 5: column 'a' holds 'inf', which is outside ±3.403e+38",
    ]


def test_columns_say_whether_they_are_whole_and_distinct(tmp_path):
    frame = {
        "whole": [f"{i}.0" for i in range(200)],
        "zeros": ["007"] * 200,
        "bool": ["true", "1"] * 100,
        "name": [f"s{i}" for i in range(190)] + ["NA"] * 10,
        "half": ["0.5"] * 200,
        "long": ["9" * 19] * 200,
        "none": [""] * 200,
    }
    lines = [",".join(frame), *(",".join(row) for row in zip(*frame.values(), strict=True))]
    table = CsvTable(
        io.BytesIO("\n".join(lines).encode()), "a.csv", None, lambda: None, lambda: None
    )
    found = {each.name: each for each in table.columns}
    assert {name for name, each in found.items() if each.are_whole} == {"whole", "zeros", "bool"}
    assert found["name"].n_values == 190 and found["name"].distinct_share == 1.0
    assert found["none"].n_values == 0
    columns = {
        "int": list(range(200)),
        "large": [10**18] * 200,
        "float": [1.0] * 199 + [None],
        "half": [0.5] * 200,
        "decimal": [Decimal("7.00")] * 200,
        "bool": [True] * 200,
        "name": [f"s{i}" for i in range(190)] + [None] * 10,
        "few": pa.array(["x", "y"] * 100).dictionary_encode(),
        "none": pa.array([None] * 200, pa.string()),
    }
    with closing(open_table(str(in_parquet(tmp_path, columns)))) as table:
        found = {each.name: each for each in table.columns}
    whole = {name for name, each in found.items() if each.are_whole}
    assert whole == {"int", "float", "decimal", "bool"}
    assert found["name"].n_values == 190 and found["name"].distinct_share == 1.0
    assert found["few"].distinct_share == 0.01 and found["few"].examples == ("x", "y")
    assert found["none"].n_values == 0


@pytest.mark.parametrize("nan", ["NAN", "Nan", "nAn", "+nan", "-NAN", "nan(1)"])
def test_every_spelling_of_nan_is_a_missing_number(nan):
    data = f"a,b\n1,1\n{nan},2\n3,{nan}\n".encode()
    rows, bad = read(data, {"a": NUMBER, "b": ColumnSpec(ColumnType.NUMBER, is_required=True)})
    assert rows == {"a": [1.0, None], "b": [1.0, 2.0]}
    assert bad == [f"a.csv, line 4: the value of column 'b' is missing ({nan})"]


MISSING_OR_NOT = [
    "",
    "NA",
    "None",
    "?",
    '"NA"',
    "NaN",
    "nan",
    "NAN",
    "Nan",
    '" Nan"',
    "nan(1)",
    "nan(",
]
LARGE = [
    "inf",
    "-Inf",
    "+INFINITY",
    "1e400",
    "-1e39",
    "9223372036854775807",
    "1" + "0" * 18,
    "9" * 18,
]
NUMBERS = [
    "0",
    "00",
    "-0",
    "007",
    "-7",
    "+5",
    "5.",
    ".5",
    ".",
    "-",
    "1e5",
    "1e-400",
    '"1"',
    '"1\n"',
]
WORDS = ["0x1F", "0X1f", "1p3", "1_000", "true", "False", "tRue", "\u0663", "\xa01", "1\x0b", "x"]


@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["", " ", "\t"]),
            st.sampled_from([*MISSING_OR_NOT, *LARGE, *NUMBERS, *WORDS]),
            st.sampled_from(["", " "]),
        ),
        min_size=1,
        max_size=3,
    ),
    spec=st.builds(ColumnSpec, st.sampled_from(ColumnType), st.booleans()),
)
def test_a_row_does_not_depend_on_whether_another_is_bad(cells, spec):
    # Arrow reads a block of good rows; a block with a bad row is parsed row by row.
    lines = [
        cell if cell.startswith('"') else before + cell + after for before, cell, after in cells
    ]
    data = "\n".join(["a,b", *(f"{line},1" for line in lines), ""]).encode()
    rows, bad = read(data, {"a": spec})
    with_bad_row, more_bad = read(data + b"1,2,3\n", {"a": spec})
    assert with_bad_row == rows
    assert more_bad[:-1] == bad and "3 fields" in more_bad[-1]


def test_columns_that_are_not_read_may_hold_anything():
    rows, bad = read(b'a,b\n1,\xff\n2,5" pipe\n3,"open\n', {"a": NUMBER})
    assert rows == {"a": [1.0, 2.0, 3.0]} and bad == []


def test_an_unclosed_quote_is_an_error_that_names_its_line():
    lines = [f"{i},red" for i in range(3000)]
    lines[1500] = '1500,"two\nlines"'
    for place, cell in ((2000, '"2000,red'), (2000, '2000,"red')):
        broken = "\n".join(["a,b", *lines[:place], cell, *lines[place + 1 :], ""])
        with pytest.raises(
            TableError, match=r"a\.csv, line 2,003: the quote .* lines after it cannot be read"
        ):
            read(broken.encode(), {"a": NUMBER})
    rows, _ = read("\n".join(["a,b", *lines]).encode(), {"a": NUMBER})
    assert len(rows["a"]) == 3000


def test_a_sample_does_not_depend_on_the_sizes_of_the_tables():
    def tables(size):
        table = pa.table({"a": list(range(1000))})
        return (table.slice(i, size) for i in range(0, 1000, size))

    samples = [sample_rows(tables(size), 100)["a"].to_pylist() for size in (7, 100, 1000)]
    assert samples[0] == samples[1] == samples[2] == sorted(set(samples[0]))
    assert len(samples[0]) == 100 and 400 < np.mean(samples[0]) < 600
    assert len(sample_rows(tables(30), 5000)) == 1000 and sample_rows(iter([]), 5) is None


def test_a_bad_row_in_a_later_block_is_reported_with_its_line(monkeypatch):
    monkeypatch.setattr(_csv_blocks, "BLOCK_BYTES", 1 << 12)
    lines = [f"{i},{i}.5" for i in range(20_000)]
    lines[17_000] = "oops,1"
    rows, bad = read("\n".join(["a,b", *lines]).encode(), {"a": NUMBER, "b": NUMBER})
    assert bad == ["a.csv, line 17,002: column 'a' holds 'oops', which is not a number"]
    assert rows["a"] == [float(i) for i in range(20_000) if i != 17_000]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a,b,a\n1,2,3\n", "more than one column 'a'"),
        ("a,b\n1,2\n".encode("utf-16"), "is not a CSV file in UTF-8"),
        (b"\x00\x01\x02,\n", "is not a CSV file in UTF-8"),
        (b"\xe9t\xe9,b\n1,2\n", "the header cannot be read"),
    ],
)
def test_a_file_that_is_not_a_table_is_an_error(data, message):
    with pytest.raises(TableError, match=message):
        table_of(data)


def test_a_row_longer_than_the_limit_is_an_error(monkeypatch):
    monkeypatch.setattr(_csv_blocks, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(_csv_blocks, "BLOCK_BYTES", 100)
    with pytest.raises(
        TableError, match=r"line 2: the row is longer than .* Is a quote not closed"
    ):
        read(b'a,b\n1,"' + b"x\n" * 2000, {"a": NUMBER})


def test_types_of_columns_are_inferred_from_the_majority():
    data = b"a,b,c,d,e,f,g\n1,1.5,true,x,2020-01-02,,007\n2,oops,false,1,2021-01-02 10:00,,12\n"
    data += b"3,2,true,y,,NA,1\n"
    types = {column.name: column.inferred_type for column in table_of(data).columns}
    assert types == {
        "a": InferredType.INTEGERS,
        "b": InferredType.NUMBERS,  # most of them
        "c": InferredType.BOOLEANS,
        "d": InferredType.TEXT,
        "e": InferredType.DATES,
        "f": InferredType.EMPTY,
        "g": InferredType.NUMBERS,  # not integers: 007 would become 7
    }


def test_types_are_inferred_after_enough_rows_have_arrived():
    class Pipe(io.BytesIO):
        def read1(self, n):  # a line at a time
            return self.readline()

    data = b"a,b\n" + b"1,1\n" * 50 + b"2,x\n" * 50
    for min_inspected_rows, inferred in (
        (0, "EMPTY"),
        (1, "INTEGERS"),
        (60, "NUMBERS"),
        (500, "TEXT"),
    ):
        arguments = (None, lambda: None, lambda: None, min_inspected_rows)
        table = CsvTable(Pipe(data), "a.csv", *arguments)
        assert table.columns[1].inferred_type is InferredType[inferred]
        assert sum(len(rows) for rows in table.read({"b": TEXT}, pytest.fail)) == 100


def test_an_unknown_column_is_an_error_that_lists_the_columns():
    with pytest.raises(TableError, match=r"no column 'z'. Its columns are 'a', 'b'\.$"):
        find_column(table_of(b"a,b\n1,2\n"), "z")
    with pytest.raises(TableError, match="must hold the names of the columns"):
        find_column(table_of(b"5.1,3.5,setosa\n4.9,3.0,setosa\n"), "species")


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_a_table_error(data):
    read_anything(data)


@given(
    st.lists(
        st.sampled_from([b"a", b"b", b"1", b"2.5", b",", b"\n", b"\r", b'"', b" ", b"NA", b"\xff"]),
        max_size=60,
    )
)
def test_any_csv_gives_rows_or_a_table_error(parts):
    read_anything(b"a,b\n" + b"".join(parts))


def read_anything(data):
    try:
        table = table_of(data)
        specs = {column.name: (NUMBER, TEXT)[i % 2] for i, column in enumerate(table.columns)}
        n = sum(len(rows) for rows in table.read(specs, lambda bad: None))
    except TableError:
        return
    assert n <= 1 + data.count(b"\n") + data.count(b"\r")


@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e30, 1e30),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
        ),
        min_size=1,
        max_size=30,
    ),
    block=st.integers(1, 50),
)
def test_rows_do_not_depend_on_the_block_size(rows, block):
    import csv

    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *rows])
    data = text.getvalue().encode()
    old, _csv_blocks.BLOCK_BYTES = _csv_blocks.BLOCK_BYTES, block
    try:
        found, bad = read(data, {"a": NUMBER, "b": TEXT})
    finally:
        _csv_blocks.BLOCK_BYTES = old
    assert bad == []
    assert found["a"] == [number for number, _ in rows]
    assert found["b"] == [text for _, text in rows]


@given(data=st.lists(st.sampled_from([b"a", b'"', b",", b"\n", b"x\n"]), max_size=40))
def test_blocks_join_to_the_file_and_end_at_line_ends(data):
    data = b"".join(data)
    stream = io.BytesIO(data)
    blocks = []
    try:
        blocks.extend(read_blocks(lambda n: stream.read(5), lambda start: ","))
    except TableError:  # the file ends inside quotes, after all blocks but the last
        n_bytes = sum(len(block.data) for block in blocks)
        assert b'"' in data[n_bytes:] and b"\n" in data[n_bytes:]
        data = data[:n_bytes]
    assert b"".join(block.data for block in blocks) == data
    for block, after in pairwise(blocks):
        assert block.data.endswith(b"\n")
        assert after.first_line == block.first_line + block.data.count(b"\n")


def test_quotes_within_fields_do_not_hide_record_ends():
    assert end_of_last_record(b'1,"a\nb"\n2,"c\n', ",") == 8
    assert end_of_last_record(b'5" pipe,1\nx,2\ny', ",") == 14
    assert end_of_last_record(b'"a\nb\n', ",") == 0


def test_rows_are_skipped_and_regrouped_into_batches():
    tables = [pa.table({"a": range(start, stop)}) for start, stop in [(0, 5), (5, 6), (6, 17)]]
    batches = [batch["a"].to_pylist() for batch in rebatch(skip_rows(iter(tables), 2), repeat(4))]
    assert batches == [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13], [14, 15, 16]]
    with pytest.raises(TableError, match="cannot skip 18 rows: the table has only 17"):
        list(skip_rows(iter(tables), 18))


def test_the_format_is_detected_from_the_first_bytes(tmp_path):
    data = b"a,b\n1,x\n2,y\n"
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "gzipped").write_bytes(gzip.compress(data))
    parquet.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "table")
    for name in ("plain", "gzipped", "table"):
        table = open_table(str(tmp_path / name))
        rows = pa.concat_tables(table.read({"b": TEXT, "a": NUMBER}, pytest.fail))
        assert rows.to_pydict() == {"b": ["x", "y"], "a": [1.0, 2.0]}
        assert table.fraction_read() == 1.0
        table.close()


def test_a_truncated_file_is_an_error(tmp_path):
    whole = gzip.compress(bytes(str(list(range(10_000))), "ascii").replace(b", ", b"\n"))
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    with (
        closing(open_table(str(tmp_path / "cut.gz"))) as table,
        pytest.raises(TableError, match="cannot be decompressed"),
    ):
        list(table.read({"[0": NUMBER}, pytest.fail))
    path = tmp_path / "cut.parquet"
    parquet.write_table(pa.table({"a": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableError, match="not a valid Parquet file"):
        open_table(str(path))


def test_a_parquet_column_of_another_type_is_an_error_that_names_table_and_row(tmp_path):
    path = in_parquet(tmp_path, {"a": [1.5, 2.0]})
    with pytest.raises(
        TableError, match=r"a\.parquet, after row 0: column 'a' cannot be read as an"
    ):
        read_parquet(path, {"a": INTEGER})


def test_parquet_columns_of_all_types_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {
        "int": pa.array([1, None, 3, 4, 5], pa.int16()),
        "float": pa.array([1.5, 2.5, None, np.inf, float("nan")], pa.float32()),
        "bool": [True, False, None, True, True],
        "text": pa.array(["x", "y", "z", None, ""]).dictionary_encode(),
        "whole": pa.array([1.0, 2.0, None, 4.0, 5.0]),
        "day": pa.array([1, 2, 3, 4, 5], pa.date32()),
        "list": [[1]] * 5,
    }
    parquet.write_table(pa.table(columns), path)
    table = open_table(str(path))
    types = [column.inferred_type for column in table.columns]
    assert types == [
        InferredType.INTEGERS,
        InferredType.NUMBERS,
        InferredType.BOOLEANS,
        InferredType.TEXT,
        InferredType.INTEGERS,
        InferredType.DATES,
        InferredType.OTHER,
    ]
    bad = []
    specs = {
        "float": NUMBER,
        "int": NUMBER,
        "bool": NUMBER,
        "text": ColumnSpec(ColumnType.TEXT, True),
    }
    rows = pa.concat_tables(table.read(specs, lambda row: bad.append(str(row)))).to_pydict()
    assert rows == {
        "float": [1.5, 2.5, None],
        "int": [1.0, None, 3.0],
        "bool": [1.0, 0.0, None],
        "text": ["x", "y", "z"],
    }
    assert bad == [
        f"{path}, row 4: column 'float' holds 'inf', which is outside ±3.403e+38",
        f"{path}, row 5: the value of column 'text' is missing",
    ]
    table.close()
    with closing(open_table(str(path))) as table:
        labels = pa.concat_tables(table.read({"whole": INTEGER}, lambda row: None))
    assert labels.to_pydict() == {"whole": [1, 2, 4, 5]}
