"""What results need to know of an application is said where the application is declared."""

from polypath import registry


def test_traffic_of_applications() -> None:
    told = {
        name: (entry.traffic.direction, entry.traffic.delays) for name, entry in registry.entries("application").items()
    }
    assert told == {
        "bulk": ("one-way", "none"),
        "cbr": ("one-way", "none"),
        "fetch": ("fetched", "requests"),
        "messages": ("one-way", "messages"),
        "on-off": ("one-way", "none"),
        "page": ("fetched", "parts"),
        "ping": ("both-ways", "echoes"),
        "ping-pong": ("both-ways", "requests"),
        "relay": ("both-ways", "none"),
        "request-response": ("both-ways", "requests"),
        "stream": ("one-way", "none"),
        "tunnel": ("both-ways", "none"),
        "video": ("fetched", "parts"),
    }


def test_nothing_is_known_of_what_a_capture_holds() -> None:
    assert registry.traffic("captured") == registry.Traffic()
