"""The memory engine, as the rest of Herdbook knows it."""

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium

SPEC = EngineSpec(
    schemes=("memory",),
    medium=Medium.MEMORY,
    store="herdbook.adapters.memory.store:MemoryStore",
    options=("clock",),
)
