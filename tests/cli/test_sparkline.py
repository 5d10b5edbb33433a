import pytest

from polypath.cli.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "top", "width", "line"),
    [
        ([], 1.0, 8, ""),
        ([0.0, 0.0], 0.0, 8, ""),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, 9, "▁▂▃▄▅▆▇██"),
        ([4, 4, 8, 8], 8, 2, "▅█"),
        ([1.0], 2.0, 24, "▅"),
        ([16.0], 8.0, 24, "█"),
    ],
)
def test_sparkline(values: list[float], top: float, width: int, line: str) -> None:
    assert sparkline(values, top, width) == line


def test_it_is_never_wider_than_asked() -> None:
    assert len(sparkline([1.0] * 1000, 1.0, 24)) == 24
