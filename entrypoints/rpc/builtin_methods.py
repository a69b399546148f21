"""The methods of the server itself, besides those of the table."""

from herdbook.entrypoints.operations.model import Operation, Parameter

BUILTIN_METHODS: tuple[Operation, ...] = (
    Operation("rpc.discover", "describe every method, as an OpenRPC document", "rpc.discover"),
    Operation(
        "journal.subscribe",
        "subscribe to all changes in the work store, in order, as journal.changed notifications",
        "journal.subscribe",
        (Parameter("since", "the entries after this number; from now on by default", "number"),),
    ),
    Operation(
        "journal.unsubscribe",
        "end a subscription; returns whether there was one",
        "journal.unsubscribe",
        (Parameter("subscription", "as journal.subscribe named it", required=True),),
    ),
    Operation("shutdown", "finish running requests, and accept no new ones", "shutdown"),
)
