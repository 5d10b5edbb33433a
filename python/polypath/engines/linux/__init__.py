"""The real Linux stack: a User Mode Linux kernel that runs a Plan in virtual time."""

from polypath.engines.linux.engine import LinuxEngine

__all__ = ["LinuxEngine"]
