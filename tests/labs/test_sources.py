"""A lab after one of the five documents says, parameter by parameter, what its source states and what the lab has."""

import re

import pytest

from polypath import labs

#: How the labs name the documents.
DOCUMENTS = (
    "ACM SIGCOMM 2020 tutorial on multipath transport protocols",
    "Kováts, measurement of the settings of Multipath TCP",
    "Ly, Lam, Dubois and Ravier, perf MPTCP OpenFlow",
    "Multipath TCP in the GLIF environment",
    "Valdivieso, Cajas, Mejía and Bernal",
)
HEADING = "## Source and lab\n"
HEADER = "| parameter | source | lab | why they differ |\n|---|---|---|---|\n"
PARAMETERS = {
    "topology",
    "rates",
    "delays",
    "queues",
    "buffers",
    "MTU",
    "protocol",
    "congestion control",
    "scheduler",
    "path manager",
    "traffic",
    "duration",
    "repetitions",
    "measured",
}

FOUND = sorted(name for name, lab in labs.catalogue().items() if lab.source.startswith(DOCUMENTS))


def test_every_document_has_labs() -> None:
    sources = [labs.get(name).source for name in FOUND]
    assert all(any(source.startswith(document) for source in sources) for document in DOCUMENTS)


@pytest.mark.parametrize("name", FOUND)
def test_the_readme_compares_source_and_lab(name: str) -> None:
    lab = labs.get(name)
    section = lab.readme.split(HEADING)[1].split("\n## ")[0]
    table = section.split(HEADER)[1].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    assert all(len(row) == 4 and row[1] and row[2] for row in rows)
    assert {row[0] for row in rows} >= PARAMETERS
    # What is quoted as the lab's own stands in its files.
    files = "".join((lab.folder / file).read_text(encoding="utf-8") for file in ("scenario.toml", "lab.toml"))
    quoted = {value for row in rows for value in re.findall(r"`([^`]+)`", row[2])}
    assert {value for value in quoted if value not in files} == set()
