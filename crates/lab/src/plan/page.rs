//! A web page: its objects, and their dependencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As many bytes as an object may have.
const MOST_BYTES: u64 = 1_000_000_000_000_000;

/// Objects, each of which comes after those that it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The application whose page it is, which this is one more connection for; absent: it has its own objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Object {
    pub name: String,
    /// What the request asks for.
    pub path: String,
    pub size_bytes: u64,
    /// Places of objects before this one; it is asked for when all of them have come.
    #[serde(default)]
    pub after: Vec<usize>,
    /// From the request's last byte to the response's first.
    #[serde(default)]
    pub think_ns: u64,
}

impl Page {
    /// What makes it impossible, if anything does.
    pub fn fault(&self) -> Option<&'static str> {
        let late = |(place, object): (usize, &Object)| object.after.iter().any(|&it| it >= place);
        let unfit = |byte: u8| !byte.is_ascii_graphic();
        if self.of.is_some() != self.objects.is_empty() {
            Some("a page has either objects or the application that has them")
        } else if self.objects.iter().enumerate().any(late) {
            Some("an object of a page comes after all that it depends on")
        } else if self.objects.iter().any(|it| it.size_bytes > MOST_BYTES) {
            Some("an object of a page has 10^15 bytes at most")
        } else if self.objects.iter().any(|it| it.path.bytes().any(unfit)) {
            Some("a path of a page has printable characters of ASCII alone")
        } else {
            None
        }
    }
}
