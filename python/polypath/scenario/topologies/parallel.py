"""Two hosts with one link each, and routers side by side between them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from polypath.scenario.topologies.base import Network, Topology

_ROWS = 3


class Parallel(Topology):
    """client, left, the routers path0, path1, .. side by side, right, server."""

    kind: Literal["parallel"]
    source: ClassVar[str] = "Valdivieso, Cajas, Mejía and Bernal, EPN Quito, 2017, figure 2"
    paths: int = Field(default=2, ge=1, le=256)
    """Number of parallel routers."""

    def made(self) -> Network:
        link, access_link = self.link, self.access_link
        made = Network(["client", "server"], ["left", *self._routers(), "right"])
        made.links["client"] = access_link("client", "left")
        for router in self._routers():
            made.links[f"left-{router}"] = link("left", router)
            made.links[f"{router}-right"] = link(router, "right")
        made.links["server"] = access_link("right", "server")
        return made

    def _routers(self) -> list[str]:
        return [f"path{number}" for number in range(self.paths)]

    def picture(self) -> str:
        names = self._routers()
        if len(names) > _ROWS:
            names = [names[0], "..", names[-1]]
        width = max(map(len, names))
        middle = len(names) // 2
        lines = []
        for number, name in enumerate(names):
            here = name.center(width) if name == ".." else f"-- {name.center(width)} --"
            here = here.center(width + 6)
            sides = ("client ---- left ", " right ---- server") if number == middle else (" " * 17, "")
            lines.append(f"{sides[0]}{here}{sides[1]}".rstrip())
        return "\n".join(lines)
