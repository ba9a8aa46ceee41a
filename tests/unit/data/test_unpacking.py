"""Packed streams, and lines without end: refused at once, with the true cause."""

import gzip
import io

import pytest
import zstandard

import spectral_irt as si
from spectral_irt.errors import ReadError
from spectral_irt.reading import csv as csv_text
from spectral_irt.reading import text_pieces as raw
from spectral_irt.reading.text_pieces import ZstdStream, whole

TABLE = b"person,q1,q2\n" + b"".join(b"p%d,%d,%d\n" % (k, k % 2, k // 2 % 2) for k in range(2000))
pack = zstandard.ZstdCompressor().compress


def test_zstd_is_unpacked_by_streams(tmp_path):
    packed = pack(TABLE)
    assert whole(ZstdStream(io.BytesIO(packed + packed)), "two frames") == 2 * TABLE
    with pytest.raises(EOFError):
        whole(ZstdStream(io.BytesIO(packed[:-5])), "cut short")
    # A line break inside a value stays as it is.
    (tmp_path / "b.csv.zst").write_bytes(pack(b'person,"q\r\n1",q2\na,1,0\nb,0,1\n'))
    assert si.read(tmp_path / "b.csv.zst").items.tolist() == ["q\r\n1", "q2"]


@pytest.mark.parametrize("fill", [b"a", b","])
def test_a_line_without_end(tmp_path, fill, monkeypatch):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 1 << 20)
    seen = 0

    def cut(buffer):
        nonlocal seen
        seen += len(buffer)
        return raw.end_of_last_record(buffer)

    monkeypatch.setattr(csv_text, "end_of_last_record", cut)
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(fill * (1 << 24)))
    with pytest.raises(ReadError, match=r"line 1 has no end within 1 MB.* how the lines"):
        si.read(tmp_path / "line.csv.gz")
    assert seen < 1 << 23  # the same bytes are not looked at again and again
    (tmp_path / "quote.csv").write_bytes(b'a,"' + fill * (1 << 21))
    with pytest.raises(ReadError, match=r"a quotation mark on line 1.* is never closed"):
        si.read(tmp_path / "quote.csv")


def test_a_header_of_more_columns_than_are_read(tmp_path):
    (tmp_path / "commas.csv.gz").write_bytes(gzip.compress(b"," * 3_000_000 + b"\n1,0\n"))
    with pytest.raises(ReadError, match=r"the header has 3,000,001 columns, and at most 1,000,000 .* long table"):
        si.read(tmp_path / "commas.csv.gz")
