"""The methods of the server itself, besides those of the table."""

from herdbook.entrypoints.operations.model import Operation, Parameter

BUILTIN_METHODS: tuple[Operation, ...] = (
    Operation(
        "rpc.discover", "describe every method, as an OpenRPC document", "", "", "rpc.discover"
    ),
    Operation(
        "journal.subscribe",
        "be told of every change of the work, in order, by journal.changed notifications",
        "",
        "",
        "journal.subscribe",
        (Parameter("since", "the entries after this number; from now on by default", "number"),),
    ),
    Operation(
        "journal.unsubscribe",
        "be told no more; whether there was such a subscription",
        "",
        "",
        "journal.unsubscribe",
        (Parameter("subscription", "as journal.subscribe named it", required=True),),
    ),
    Operation("shutdown", "finish what was begun, and take nothing new", "", "", "shutdown"),
)
