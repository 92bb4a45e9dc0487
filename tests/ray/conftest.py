"""Ray for the tests: one, on two processors, for all tests of a worker."""

from __future__ import annotations

import pytest


@pytest.fixture
def ray_here():
    """Ray, started if it is not there. Tests that use it are of one group: `RAY`."""
    import ray

    if not ray.is_initialized():
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=200 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
    return ray
