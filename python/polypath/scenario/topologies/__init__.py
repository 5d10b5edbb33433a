"""The topologies that a table `[topology]` chooses by its `kind`: one file each, and a name in the union below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field

from polypath import registry
from polypath.scenario.base import descriptions
from polypath.scenario.topologies.base import Network, Topology, Way
from polypath.scenario.topologies.bcube import BCube
from polypath.scenario.topologies.dumbbell import Dumbbell
from polypath.scenario.topologies.fat_tree import FatTree
from polypath.scenario.topologies.jellyfish import Jellyfish
from polypath.scenario.topologies.parallel import Parallel
from polypath.scenario.topologies.parking_lot import ParkingLot
from polypath.scenario.topologies.three_level import ThreeLevel
from polypath.scenario.topologies.torus import Torus
from polypath.scenario.topologies.vl2 import Vl2

AnyTopology = Annotated[
    BCube | Dumbbell | FatTree | Jellyfish | Parallel | ParkingLot | ThreeLevel | Torus | Vl2,
    Field(discriminator="kind"),
]

REGISTRY: Mapping[str, type[Topology]] = {
    str(get_args(each.model_fields["kind"].annotation)[0]): each for each in get_args(get_args(AnyTopology)[0])
}
"""Every topology by its kind."""


def _entries() -> dict[str, registry.Entry]:
    return {
        name: registry.Entry(
            "topology",
            name,
            str(model.__doc__).splitlines()[0].rstrip("."),
            model.source,
            tuple(
                registry.Parameter(key, "integer", given.default, None, None, None, descriptions(model).get(key, ""))
                for key, given in model.model_fields.items()
                if given.annotation is int and key in model.__annotations__
            ),
        )
        for name, model in REGISTRY.items()
    }


registry.provide("topology", _entries)

__all__ = ["REGISTRY", "AnyTopology", "Network", "Topology", "Way"]
