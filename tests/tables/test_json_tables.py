from __future__ import annotations

import gzip
import io
import json
from contextlib import closing

import pyarrow as pa
import pytest

from onlineforest._tables import json_tables as _json_tables
from onlineforest._tables.columns import ColumnSpec, ColumnType, InferredType, TableError
from onlineforest._tables.json_tables import JsonTable
from onlineforest._tables.tables import open_table

SPECS = {
    "a": ColumnSpec(ColumnType.NUMBER),
    "b": ColumnSpec(ColumnType.LEVEL),
    "c": ColumnSpec(ColumnType.CODE),
}


def table_of(text, *arguments):
    data = text if isinstance(text, bytes) else text.encode()
    return JsonTable(io.BytesIO(data), "a.jsonl", lambda: None, lambda: None, *arguments)


def read(text, specs=SPECS):
    bad = []
    rows = [row for table in table_of(text).read(specs, bad.append) for row in table.to_pylist()]
    return rows, [str(each) for each in bad]


def test_values_are_read_by_their_keys():
    rows, bad = read(
        '{"b": "x", "a": 1.5, "c": 7, "other": [1]}\n\n'
        '{"a": 3, "c": true, "b": ""}\r\n'
        '  {"c": "08", "b": 1, "a": "2.5"}\n'
        '{"a": NaN, "b": null}\n'
        '{"a": "NA", "b": "NA", "c": 1e2}'
    )
    assert bad == []
    assert rows == [
        {"a": 1.5, "b": "x", "c": 7},
        {"a": 3.0, "b": None, "c": 1},
        {"a": 2.5, "b": "1", "c": 8},
        {"a": None, "b": None, "c": None},
        {"a": None, "b": "NA", "c": 100},
    ]


def test_bad_lines_are_named():
    lines = [
        ('{"a": 1', "the line is not valid JSON: Expecting ',' delimiter at character 8"),
        ("[1]", "the line holds an array, not a JSON object"),
        ("12", "the line holds a number, not a JSON object"),
        ("null", "the line holds null, not a JSON object"),
        ('{"a": {"x": 1}}', "column 'a' holds an object, which is neither a number nor text"),
        ('{"b": [1]}', "column 'b' holds an array, which is neither a number nor text"),
        ('{"a": "x"}', "column 'a' holds 'x', which is not a number"),
        ('{"a": 1e300}', "column 'a' holds '1e+300', which is outside ±3.403e+38"),
        ('{"a": 1e999}', "column 'a' holds 'Infinity', which is outside ±3.403e+38"),
        (f'{{"a": {10**60}}}', f"column 'a' holds '{'1' + 39 * '0'}…', which is outside"),
        ('{"c": 1.5}', "column 'c' holds '1.5', but its categories are whole numbers"),
        ('{"b": "\\ud800"}', "the line is not UTF-8"),
        (b'{"b": "\xff"}', "the line is not UTF-8"),
        ('{"a": %s}' % ("9" * 5000), "the line cannot be read: Exceeds the limit"),
        ("[" * 100_000, "the line cannot be read: maximum recursion depth"),
        ('{"a": 1} {"a": 2}', "the line is not valid JSON: Extra data at character 10"),
    ]
    raw = [text if isinstance(text, bytes) else text.encode() for text, _ in lines]
    rows, bad = read(b'{"a": 1}\n' + b"\n".join(raw) + b'\n{"a": 2, "b": "\\u00e9"}\n')
    assert [row["a"] for row in rows] == [1, 2] and rows[1]["b"] == "é"
    assert len(bad) == len(lines)
    for number, (found, (_, reason)) in enumerate(zip(bad, lines, strict=True), 2):
        assert found.startswith(f"a.jsonl, line {number}: {reason}")


def test_a_row_is_bad_if_a_required_value_is_missing():
    required = {"y": ColumnSpec(ColumnType.TEXT, is_required=True)}
    rows, bad = read('{"y": "u"}\n{"x": 1}\n{"y": null}\n{"y": "v"}', required)
    assert [row["y"] for row in rows] == ["u", "v"]
    assert bad == [f"a.jsonl, line {n}: the value of column 'y' is missing" for n in (2, 3)]


def test_rows_before_an_error_are_yielded():
    def stop(bad):
        raise ValueError(str(bad))

    found = table_of('{"a": 1}\n{"a": 2}\n{"a": "x"}\n{"a": 3}').read(SPECS, stop)
    assert next(found)["a"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="line 3"):
        next(found)


@pytest.mark.parametrize(
    ("values", "expected", "are_whole"),
    [
        ([1, 2, None], InferredType.INTEGERS, True),
        ([1, 2.5], InferredType.NUMBERS, False),
        ([True, False], InferredType.BOOLEANS, True),
        (["x", "y", None], InferredType.TEXT, False),
        (["1", "2"], InferredType.TEXT, False),
        (["2024-01-31", "2024-02-01"], InferredType.DATES, False),
        ([None, ""], InferredType.EMPTY, False),
        ([1, [2]], InferredType.OTHER, False),
    ],
)
def test_types_are_inferred_from_the_first_values(values, expected, are_whole):
    (column,) = table_of("".join(json.dumps({"a": value}) + "\n" for value in values)).columns
    assert (column.name, column.inferred_type, column.are_whole) == ("a", expected, are_whole)


def test_numbers_with_text_among_them_are_told():
    (column,) = table_of('{"a": 1}\n{"a": 2}\n{"a": "more"}\n').columns
    assert column.inferred_type is InferredType.NUMBERS and column.texts == ("more",)


def test_columns_are_the_keys_of_the_first_rows():
    table = table_of('{"b": 1}\noops\n{"a": 2, "b": 3}\n')
    assert [column.name for column in table.columns] == ["b", "a"]
    assert table.first_bytes() == b'{"b": 1}'
    for text in ("", "\n \n", "{}\n"):
        with pytest.raises(TableError, match="is empty: each line must hold a JSON object"):
            table_of(text)
    with pytest.raises(TableError, match=r"a\.jsonl, line 1: the line holds text, not a JSON obj"):
        table_of('"a"\n[1]\n')


def test_blocks_end_anywhere(monkeypatch):
    rows = [{"a": i, "b": f"é{i}"} for i in range(200)]
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    specs = {name: SPECS[name] for name in "ab"}
    for size in (1, 7, 100, 1 << 17):
        monkeypatch.setattr(_json_tables, "BLOCK_BYTES", size)
        assert read(text, specs) == (rows, [])
        assert read(text + "\n", specs) == (rows, [])
    monkeypatch.setattr(_json_tables, "BLOCK_BYTES", 10)
    monkeypatch.setattr(_json_tables, "MAX_RECORD_BYTES", 50)
    with pytest.raises(TableError, match=r"a\.jsonl, line 2: the line is longer than 0 MB"):
        read('{"a": 1}\n{"a": "' + 100 * "x")


def test_the_format_is_found_by_name_or_content(tmp_path):
    text = b'{"a": 1}\n{"a": 2}\n'
    for name, data, options in (
        ("x.jsonl", text, []),
        ("x.NDJSON", b"\xef\xbb\xbf" + text, []),
        ("x.jsonl.gz", gzip.compress(text), []),
        ("x.txt", b"\n" + text, []),
        ("x.dat", gzip.compress(text), ["jsonl"]),
    ):
        (tmp_path / name).write_bytes(data)
        with closing(open_table(str(tmp_path / name), *options)) as table:
            assert not table.has_fixed_columns
            assert pa.concat_tables(table.read({"a": SPECS["a"]}, pytest.fail)).num_rows == 2
            assert table.fraction_read() == 1.0
    (tmp_path / "x.jsonl").write_text("a\n1\n")
    with closing(open_table(str(tmp_path / "x.jsonl"), "csv")) as table:
        assert table.has_fixed_columns
    (tmp_path / "y.jsonl.gz").write_bytes(gzip.compress(text)[:-12])
    with pytest.raises(TableError, match="cannot be decompressed"):
        open_table(str(tmp_path / "y.jsonl.gz"), min_inspected_rows=9)
