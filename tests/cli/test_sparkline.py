import pytest

from polypath.cli.sparkline import means, sparkline


@pytest.mark.parametrize(
    ("values", "top", "line"),
    [
        ([], 1.0, ""),
        ([0.0, 0.0], 0.0, ""),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, "▁▂▃▄▅▆▇██"),
        ([1.0], 2.0, "▅"),
        ([16.0], 8.0, "█"),
    ],
)
def test_sparkline(values: list[float], top: float, line: str) -> None:
    assert sparkline(values, top) == line


@pytest.mark.parametrize(
    ("values", "width", "expected"),
    [
        ([], 2, []),
        ([3.0], 24, [3.0]),
        ([4, 4, 8, 8], 2, [4, 8]),
        ([1, 2, 3], 2, [1, 2.5]),
        ([1.0] * 1000, 24, [1.0] * 24),
    ],
)
def test_means(values: list[float], width: int, expected: list[float]) -> None:
    assert means(values, width) == expected
