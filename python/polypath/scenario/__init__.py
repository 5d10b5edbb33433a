"""Scenarios: written by a person, checked, and converted to the plan that an engine runs."""

from polypath.scenario.errors import ScenarioError
from polypath.scenario.model import Scenario
from polypath.scenario.picture import describe_topology
from polypath.scenario.plan import Plan
from polypath.scenario.schema import json_schema

__all__ = ["Plan", "Scenario", "ScenarioError", "describe_topology", "json_schema"]
