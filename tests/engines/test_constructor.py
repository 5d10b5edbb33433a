"""What the text of a class tells of its arguments, without executing it."""

import ast

import pytest

from polypath.engines import constructor


def refused(source: str, *given: str) -> str | None:
    (made,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return constructor.refused(made, given)


TAKES = "class A:\n    def __init__(self, weights, *, skip=0, last): ..."


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        (TAKES, ("weights", "last"), None),
        (TAKES, ("weights", "last", "skip"), None),
        (TAKES, ("weights",), "class 'A' needs the argument 'last'"),
        (TAKES, ("last",), "class 'A' needs the argument 'weights'"),
        (TAKES, ("weights", "last", "other"), "class 'A' takes no argument 'other'; it takes weights, skip, last"),
        (TAKES, ("weight", "last"), "class 'A' takes no argument 'weight'"),
        ("class A: ...", ("k",), "class 'A' takes no argument 'k'; it takes none"),
        ("class A(object):\n    'Text.'\n    x = 1\n    y: int = 2\n    def f(self): ...", ("k",), "it takes none"),
        ("class A:\n    def __init__(self, k, /): ...", ("k",), "class 'A' takes no argument 'k'; it takes none"),
        ("class A:\n    def __init__(self, k, /): ...", (), "class 'A' needs the argument 'k'"),
        ("class A:\n    def __init__(self, a, b=1): ...", ("a",), None),
        ("class A:\n    def __init__(self, a, **more): ...", ("a", "b"), None),
        ("class A:\n    def __init__(self, a, **more): ...", ("b",), "class 'A' needs the argument 'a'"),
    ],
)
def test_arguments_are_compared_with_the_constructor(source: str, given: tuple[str, ...], expected: str | None) -> None:
    found = refused(source, *given)
    assert (found is None) if expected is None else (found is not None and expected in found)


def test_the_nearest_name_is_a_hint() -> None:
    assert refused(TAKES, "weight", "last") == "class 'A' takes no argument 'weight'; did you mean 'weights'?"


@pytest.mark.parametrize(
    "source",
    [
        "class A(Other): ...",
        "class A(metaclass=Other): ...",
        "@dataclass\nclass A:\n    k: int",
        "class A:\n    @wrapped\n    def __init__(self): ...",
        "class A:\n    def __new__(cls, k): ...",
        "class A:\n    __init__ = made()",
        "class A:\n    if True:\n        def __init__(self, k): ...",
        "class A:\n    def __init__(self): ...\n    def __init__(self, k): ...",
        "class A:\n    def __init__(*all, **more): ...",
        "class A:\n    exec('x')",
    ],
)
def test_nothing_is_said_where_the_text_does_not_tell(source: str) -> None:
    assert refused(source, "k") is None
