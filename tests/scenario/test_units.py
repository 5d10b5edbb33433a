"""Quantities with units, in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypath import units
from polypath.units import PACKETS, RATE, SIZE, TIME, Quantity, UnitError

KINDS = (RATE, TIME, SIZE, PACKETS)


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (RATE, "20 Mbps", 20_000_000),
        (RATE, "20Mbps", 20_000_000),
        (RATE, "1.5 Gbit/s", 1_500_000_000),
        (RATE, "256 kbps", 256_000),
        (TIME, "20 ms", 20_000_000),
        (TIME, "0.25 s", 250_000_000),
        (TIME, "7 \u00b5s", 7_000),
        (TIME, "7 \u03bcs", 7_000),
        (TIME, "2 min", 120_000_000_000),
        (SIZE, "1 MB", 1_000_000),
        (SIZE, "1 MiB", 1_048_576),
        (SIZE, "213 kB", 213_000),
        (SIZE, "2 TB", 2 * 10**12),
        (PACKETS, "80 packets", 80),
        (PACKETS, "1 packet", 1),
    ],
)
def test_texts_are_read(quantity: Quantity, text: str, value: int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (RATE, 20_000_000, "20 Mbps"),
        (RATE, 999, "999 bps"),
        (TIME, 0, "0 s"),
        (TIME, 1_500_000_000, "1.5 s"),
        (TIME, 2_900_000_000, "2.9 s"),
        (SIZE, 16_777_216, "16 MiB"),
        (SIZE, 1_063_500, "1.0635 MB"),
        (SIZE, 87_380, "87380 B"),
        (PACKETS, 400, "400 packets"),
    ],
)
def test_values_are_written_short(quantity: Quantity, value: int, text: str) -> None:
    assert quantity.format(value) == text


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (TIME, 0, "0 s"),
        (TIME, 999, "999 ns"),
        (TIME, 20_002_000, "20.002 ms"),
        (TIME, 118_943_881, "118.943881 ms"),
        (TIME, 1_157_845_379, "1.157845379 s"),
        (TIME, 7_200_000_000_000, "7200 s"),
        (RATE, 1_234_567, "1.234567 Mbps"),
        (RATE, 300_000, "300 kbps"),
        (SIZE, 6_291_456, "6 MiB"),
        (SIZE, 87_380, "87.38 kB"),
        (PACKETS, 4000, "4000 packets"),
    ],
)
def test_values_are_shown_in_a_unit_of_their_size(quantity: Quantity, value: int, text: str) -> None:
    assert quantity.shown(value) == text
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("quantity", "text", "message", "hint"),
    [
        (RATE, 20, '20 has no unit; write for example "20 Mbps"', None),
        (RATE, "20", "'20' has no unit; write for example \"20 Mbps\"", None),
        (RATE, "20 ms", "'20 ms' is a time, not a rate", None),
        (RATE, "20 Mbp", "unknown unit 'Mbp' in '20 Mbp'", "Mbps"),
        (RATE, "fast", "'fast' is not a rate; write for example \"20 Mbps\"", None),
        (RATE, "1e1 Mbps", "'1e1 Mbps' is not a rate; write for example \"20 Mbps\"", None),
        (RATE, "1,5 Mbps", "'1,5 Mbps' is not a rate; write for example \"20 Mbps\"", None),
        (RATE, "1_000 kbps", "'1_000 kbps' is not a rate; write for example \"20 Mbps\"", None),
        (RATE, "5. Mbps", "'5. Mbps' is not a rate; write for example \"20 Mbps\"", None),
        (RATE, "10 MB/s", "'10 MB/s' counts bytes; a rate counts bits, 8 to a byte", None),
        (RATE, "10 KiBps", "'10 KiBps' counts bytes; a rate counts bits, 8 to a byte", None),
        (TIME, "2 sec", "unknown unit 'sec' in '2 sec'; there is ns, us, \u00b5s, \u03bcs, ms, s, min, h", None),
        (RATE, True, 'expected a rate such as "20 Mbps"', None),
        (RATE, None, 'expected a rate such as "20 Mbps"', None),
        (RATE, "0.5 bps", "'0.5 bps' is finer than 1 bps", None),
        (RATE, "99999 Tbps", "'99999 Tbps' is too large: at most 1000000 Gbps", None),
        (TIME, "-3 ms", "a time cannot be negative: '-3 ms'", None),
        (TIME, "1 %", "'1 %' is a share, not a time", None),
        (SIZE, "10 KB", "unit 'KB' in '10 KB' is ambiguous", "kB' or 'KiB"),
        (PACKETS, "80 kB", "'80 kB' is a size, not a number of packets", None),
    ],
)
def test_bad_texts_say_why(quantity: Quantity, text: object, message: str, hint: str | None) -> None:
    with pytest.raises(UnitError) as caught:
        quantity.parse(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_zero_is_refused_where_it_makes_no_sense() -> None:
    assert RATE.parse("0 bps") == 0
    with pytest.raises(UnitError, match=r"a rate must be greater than zero: '0 Mbps'"):
        RATE.parse("0 Mbps", positive=True)


@given(st.sampled_from(KINDS), st.data())
def test_what_is_written_reads_back(quantity: Quantity, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, quantity.limit))
    assert quantity.parse(quantity.format(value)) == value


@given(st.floats(0, 1))
def test_shares_read_back_to_the_same_double(value: float) -> None:
    text = units.format_share(value)
    if len(text) <= 48:
        assert units.parse_share(text) == value


@given(st.text(max_size=60), st.sampled_from(KINDS))
def test_any_text_is_read_or_refused(text: str, quantity: Quantity) -> None:
    try:
        value = quantity.parse(text)
    except UnitError:
        return
    assert 0 <= value <= quantity.limit


@pytest.mark.parametrize(
    ("text", "limit"), [("80 packets", ("packets", 80)), ("213 kB", ("bytes", 213_000)), ("1 packet", ("packets", 1))]
)
def test_queue_limits(text: str, limit: tuple[str, int]) -> None:
    assert units.parse_queue_limit(text) == limit


def test_a_share_is_at_most_everything() -> None:
    assert units.parse_share("100 %") == 1.0
    assert units.parse_share("0.05 %") == 0.0005
    with pytest.raises(UnitError, match=r"a share cannot be more than 100 %: '101 %'"):
        units.parse_share("101 %")
    with pytest.raises(UnitError, match=r"0.01 has no unit; write for example \"1 %\""):
        units.parse_share(0.01)
