"""Describe the machine: processor and versions, never its name."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("onlineforest", "numpy", "scikit-learn", "river", "numba")


def describe_machine() -> dict[str, str | float | None]:
    """Processor, cores, load and versions; None for those not known or not installed."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": load(),
        "python": platform.python_version(),
        **{package: version_of(package) for package in PACKAGES},
    }


def processor() -> str | None:
    """Name of the processor, where the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else None


def load() -> float | None:
    """Mean number of runnable processes in the last minute, where the system reports it."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def version_of(package: str) -> str | None:
    """Version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
