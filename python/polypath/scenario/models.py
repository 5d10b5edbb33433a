"""Models of the network as tables of a scenario: queue disciplines and loss models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from polypath import registry
from polypath.scenario import declared
from polypath.scenario.declared import Declared
from polypath.scenario.fields import fault


class NetworkModel(Declared):
    """A model by its kind, with its settings."""

    def planned(self) -> dict[str, Any]:
        """What a Plan says of it: times in nanoseconds, sizes in bytes."""
        settings = {name: getattr(self, name) for name in type(self).model_fields if name != "kind"}
        return self.plan_of(self.kind, **settings)

    @classmethod
    def plan_of(cls, name: str, **given: Any) -> dict[str, Any]:
        """What a Plan says of the model of that name with these settings, the others as its defaults say."""
        return {"kind": name} | declared.planned(registry.find(cls.registry_kind, name), given)

    @classmethod
    def written(cls, planned: Mapping[str, Any]) -> dict[str, Any]:
        """What a scenario says of a model in a Plan."""
        return declared.written(registry.find(cls.registry_kind, planned["kind"]), planned)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        settings = self.planned()
        problem = registry.fault(self.registry_kind, settings.pop("kind"), settings)
        if problem is not None:
            raise fault(problem)
        return self


class Discipline(NetworkModel):
    """A queue discipline."""

    registry_kind = "queue"


class LossModel(NetworkModel):
    """A loss model."""

    registry_kind = "loss"


BASES: Mapping[str, type[NetworkModel]] = {"queue": Discipline, "loss": LossModel}
"""By the key of a link that chooses a model."""
