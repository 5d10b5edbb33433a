"""What a type owns, and does, stays small enough to be read at once."""

from pathlib import Path

from .rust_files import Crate, Size

CRATES = Path(__file__).resolve().parent.parent / "crates"

#: At most so much: private fields, and methods in whichever files.
MOST = Size(15, 60)

#: Types that are larger still, with what they have now. A number here may only fall, and falls with what it counts.
LARGE = {
    "capture/half::Half": Size(24, 28),
    "capture/survey::Seen": Size(16, 9),
    "net/channel/line::Line": Size(17, 34),
    "net/network::Network": Size(14, 64),
    "packetdrill/interface::Interface": Size(33, 0),
    "transport/congestion/bbr::Bbr": Size(22, 17),
    "transport/mptcp/connection::Connection": Size(20, 247),
    "transport/mptcp/send::DataSender": Size(26, 40),
    "transport/stream/receiver::Receiver": Size(22, 49),
    "transport/tcp/recovery::Delivery": Size(18, 2),
    "transport/tcp::Socket": Size(9, 122),
}


def sizes() -> dict[str, Size]:
    return {
        "/".join((folder.parent.name, *module)) + f"::{name}": size
        for folder in sorted(CRATES.glob("*/src"))
        for (*module, name), size in Crate.at(folder).sizes().items()
    }


def test_fields_and_methods_are_counted_in_all_files() -> None:
    crate = Crate(
        {
            ("shape",): """
                pub struct Round { pub(super) centre: (i32, i32), #[serde(default, skip)] radius: Map<u8, u8>, }
                pub struct Plain { pub a: u8, pub b: u8 }
                impl<T: Fn(u8) -> u8> Round where T: Copy { pub fn area(&self) -> u32 { fn inner() {} 3 } }
                impl Default for Round { fn default() -> Self { Self } }
                impl Plain { const fn sum(&self) -> u8 { if true { 1 } else { 2 } } fn first(self); }
                mod tests { use super::Round; impl Round { fn of_tests() {} } }
            """,
            ("tool",): "use crate::shape::Round; impl Round { #[inline] fn cut(&mut self) -> impl Iterator { x } }",
            ("other",): "impl crate::shape::Round { fn turn(&mut self) {} } struct Round { only: u8 }",
        }
    )
    assert crate.sizes() == {
        ("shape", "Round"): Size(2, 3),
        ("shape", "Plain"): Size(0, 1),
        ("other", "Round"): Size(1, 0),
    }


def test_no_type_owns_or_does_too_much() -> None:
    large = {name: size for name, size in sizes().items() if size.fields > MOST.fields or size.methods > MOST.methods}
    assert large == LARGE
