"""The ports: both edges of the hexagon.

Outside: what an engine must implement (`engine/store`), with queries as values (`engine/query`),
and everything else the outside supplies (`world`: clock, ids, git facts). Inside, written once for
every engine: the unit of work, references, the journal, projections and the named repositories.
Imports `domain` only.
"""
