"""The LMDB engine, as the rest of Herdbook knows it."""

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium

SPEC = EngineSpec(
    schemes=("lmdb",),
    medium=Medium.FOLDER,
    store="herdbook.adapters.lmdb.store:LmdbStore",
    options=("clock", "create", "size_limit", "verify"),
    data_file="data.mdb",
    probe="herdbook.adapters.lmdb.probe:probe",
    is_missing="herdbook.adapters.lmdb.probe:is_missing",
    driver="lmdb",
)
